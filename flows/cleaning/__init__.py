"""Finds and removes what dead runs left behind. Each part is safe at any time, concurrently with any other command.

- `action` — one action: what was done, to what, and why; `cleanup` — all parts in order
- `processes` — processes whose run is gone
- `folders` — partial folders of killed writers, and weights for servers that are gone
- `flow_runs` — flow runs that the Prefect server believes are running
- `workspaces` — old workspaces whose record is on a branch; opt-in
- `jobsets` — JobSets on a cluster; only in a namespace that is named
- `approval_requests` — candidates without an approval request, and requests that were answered elsewhere
"""
