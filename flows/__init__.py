"""When and in what order: Prefect outside, DVC inside, and the command line.

- `cli` — the command line, a file a group of commands
- `post_training` — the flow: every stage in order, then the proposal of a candidate
- `nightly` — new data join and the line follows, unless nothing has changed; `nights` — what that needs to know
- `audit_verifier` — the flow of the first two stages alone; `audit_run` — `audit_log` from the UI
- `promote` — asks a person about a candidate and carries out the answer; `promoting` — the parts of that; `comparing` —
  a candidate beside the champion
- `deciding`, `stating` — a person's decision from what was typed to the record; `policies` — by which policy, out of
  Git's history; `lines` — what is to be typed next; `new_key` — a key to sign with
- `stored_checkpoint` — all that is known about one checkpoint; `show_registry` — that and all decisions, printed
- `parameters` — the form of a run; `states` — what flows end in; `events` — what they tell others
- `audit_log` — the health rules over another trainer's log; `judge_again` — the gate over a finished run; `show_rules`
- `budget` — how long a run will take by what runs took before, and the limit on it
- `stages` — one stage, brought up to date by DVC
- `workspace` — a run's own folder: recorded code, resolved settings; `git` records the code, `inputs` what it reads
- `dvc` — what a run needs of DVC besides its stages
- `recording` — what is kept of a run, on a branch of its own (`branches`); `resuming` — going on with one that stopped
- `reproduce` — the flow that executes a recorded run anew
- `lineage`, `starters`, `signers` — where a candidate comes from, who started its run, the key that signs it;
  `verifying` — whether what is stored holds
- `locks` — what one command holds against another
- `processes` — children that never outlive their run
- `serving` — `evenkeel serve`: a Prefect server, a worker and the deployments, kept alive
- `watching` — what the Prefect UI, `status` and `logs` show of a run, and who runs it
- `janitor` — what dead runs left is removed; `cleaning` — the parts of that
- `console` — the live picture, drawn from the `board`; `summary` — what a run came to; `plan` — what it would do
- `registry` — candidates and decisions; `doctor` — what could stop a run; `environment` — a private Prefect;
  `prefect_server` — its temporary server; `server_lost` — how a run ends whose server went away
"""
