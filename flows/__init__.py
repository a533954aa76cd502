"""The orchestration: Prefect flows, DVC stages, and the command line.

The flows, each an entrypoint of `prefect.yaml`:

- `post_training` — every stage in order, then the proposal of a candidate
- `nightly` — adds new data and runs the pipeline, unless nothing has changed
- `audit_verifier` — the first two stages alone; `audit_run` — the health rules over another trainer's log
- `promote` — requests a person's approval of a candidate and carries out the decision
- `reproduce` — executes a recorded run again; `janitor` — removes what dead runs left behind

The packages:

- `cli` — the command line, one file per group of commands; `display` — what it shows; `manual` — its manual
- `run` — a run's workspace, inputs and stages; `host` — Git, DVC, locks and processes
- `recording` — the record of a run, on a branch of its own; `budget` — estimates of time and cost, and their limit
- `governance` — decisions about candidates, policies, keys; `promoting` — the parts of the flow `promote`
- `retraining` — the parts of the flow `nightly`; `cleaning` — the parts of the flow `janitor`
- `judging` — the gate over a finished run, the health rules over a log
- `serving` — `evenkeel serve`; `watching` — the status of runs in the Prefect UI, `status` and `logs`
- `prefect_runtime` — Prefect for a run that was started by hand
"""
