"""What dead runs left, found and removed. Each part may run beside anything at any time, itself included.

- `deed` — what was done, to what, and why
- `processes` — those whose run is gone
- `folders` — half-made ones of writers that were killed, and weights for servers that are gone
- `flow_runs` — those that the Prefect server takes to be under way
- `workspaces` — old ones, whose record is on a branch; only if asked for
- `jobsets` — those on a cluster; only where a namespace is named
- `questions` — candidates that nobody was asked about, and questions that were answered elsewhere
"""
