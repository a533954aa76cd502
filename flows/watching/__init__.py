"""What a run is doing: for whoever looks at the Prefect UI, at a terminal, or comes after it died.

- `execution` — who runs a workspace now, or ran it last, and how that ended
- `watcher` — a stage in the Prefect UI while it works; `channel` — the artifacts of that, and a server that is away;
  `signals` — the table of health signals
- `artifacts` — what the UI keeps of a run; `report` — its report as Markdown; `pages` — where its pages are
- `runs` — the runs of a project, from their workspaces; `status` and `logs` show them, `cancel` stops one
- `api` — the Prefect server, without Prefect
"""
