"""Who decides about candidates, by which policy, and what the registry holds.

- `registry` — the project's store, policy and signing key
- `policies` — whether decisions hold under the chain of policies, and the champion when it is judged again
- `comparison` — the gate's judgement of a candidate, compared with the champion
- `decisions`, `adoption` — what a person states: approve, reject, promote, roll back; adopt a policy
- `commands` — the commands to type next; `checkpoint` — everything known about one checkpoint; `show` — both, printed
- `new_key` — keys that sign; `verification` — whether stored checkpoints and records hold
"""
