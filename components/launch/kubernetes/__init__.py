"""A run on Kubernetes: one JobSet with the learner, which runs the loop, and rollout servers.

What is requested, without a cluster:

- `plan` — what a run needs, from its settings; `rewriting` — the settings that its pods get
- `names` — labels, names, ports; `ownership` — whom the pods are
- `manifests` — the plan as objects of Kubernetes
- `cost` — as a table; `showing` — as text

What happens to it:

- `rehearsal` — what would be refused later is refused at the start
- `launcher` — `KubernetesLauncher`: submit, look, read the log, cancel, wait; `submission` — who submits what;
  `owner` — whom it belongs to
- `api` — every call to the API server; `permissions` — what they need
- `observed`, `status`, `diagnosis` — what is there, what it comes to, and what to do about it
- `watching` — when to look again; `waiting` — what is said and borne meanwhile; `overdue` — when it must be over
- `following` — the log of rank 0 as it grows; `conclusion` — how a run ended, in its own words
- `janitor` — what dead runs left
- `doctor` — what could keep a run from a cluster
"""
