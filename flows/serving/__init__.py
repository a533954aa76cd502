"""`evenkeel serve`: a Prefect server, a worker and the project's deployments, kept alive in the foreground.

- `serve` — the command: starts everything in order, supervises it, ends it, and lets a worker continue flow runs that
  lost their process
- `options` — what may be chosen, and what server, worker and flow runs find in their environment
- `service` — `.state/serve.json`: where other commands find what is served, and who serves it; one supervised process
- `register` — a process of its own, because it imports Prefect: work pool, deployments of `prefect.yaml`, automations
- `automations` — what the server does by itself: zombies, notifications
- `worker` — Prefect's worker, with a process that stands by for the next flow run
- `flow_run` — the process of one flow run, which may stand by for it; `flow_run_pod` — the same in a pod of a cluster
- `cluster` — the deployments in the work pool of a cluster, where others serve
- `pages` — reports and data docs over HTTP, and their addresses
"""
