"""Prefect for a run that was started by hand, and what every flow uses of Prefect.

- `environment` — Prefect's settings; `temporary_server` — the server of a run without `evenkeel serve`
- `server` — a Prefect server by its REST interface, without importing Prefect; how a run ends when it is unreachable
- `states` — the states that flows and tasks end in, and the events that other flows and automations react to
"""
