"""May approval be requested, and may a checkpoint be promoted? No torch, and nothing that runs is trusted: only what is
on record.

- `evidence` — what a run left, each part as read or as the error that reading it gave; what a check is
- `checks` — the checks, in the dict `CHECKS`; every check on some evidence, and what follows from them together
- `bundle` — the evidence of a run as a folder that is kept with the candidate
- `candidate` — a stored candidate judged again, by the policy of the project, and what is known of it compared with the
  present champion
"""
