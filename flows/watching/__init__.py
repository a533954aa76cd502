"""The state of runs: in the Prefect UI, at a terminal, and after a run died.

- `execution` — who runs a workspace now, or ran it last, and how that ended
- `watcher` — a stage in the Prefect UI while it works; `artifacts` — what the UI keeps of a run, with its report
- `tracking` — a run in the trackers that its settings name
- `runs` — the runs of a project, from their workspaces; `status` and `logs` show them, `cancel` stops one
- `approvals` — candidates that await a person, and the suspended runs that ask
- `comparing` — runs side by side
"""
