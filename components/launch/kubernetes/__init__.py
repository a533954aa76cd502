"""A run on Kubernetes: one JobSet with a driver, learner ranks and rollout servers.

What is asked for, without a cluster:

- `plan` — what a run needs, from its settings; `rewriting` — what its driver is told of the other pods
- `names` — labels, names, ports; `ownership` — whom the pods are
- `manifests` — the plan as objects of Kubernetes
- `cost` — as a table; `showing` — as text

What becomes of it:

- `rehearsal` — what would be refused later is refused at the start
- `launcher` — `KubernetesLauncher`: submit, look, read the log, cancel, wait; `submission` — who submits what;
  `owner` — whom it belongs to
- `api` — every call to the API server; `permissions` — what they need
- `observed`, `status`, `diagnosis` — what is there, what it comes to, and what to do about it
- `watching` — when to look again; `waiting` — what is said and borne meanwhile; `overdue` — when it must be over
- `following` — the driver's log as it grows; `conclusion` — how a run ended, in its own words
- `janitor` — what dead runs left
- `doctor` — what could keep a run from a cluster
"""
