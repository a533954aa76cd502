"""Finds and removes what dead runs left behind. Each part is safe at any time, concurrently with any other command.

- `cleanup` — all parts in order; old workspaces whose record is on a branch, opt-in
- `leftovers` — what dead runs left: on this machine processes, partial folders of killed writers, weights for servers;
  flow runs that the Prefect server believes are running; JobSets on a cluster, in a namespace that is named
- `approval_requests` — candidates without an approval request, and requests that were answered elsewhere
"""
