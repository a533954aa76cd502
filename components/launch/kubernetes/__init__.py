"""A run on Kubernetes: one JobSet with the learner, which runs the loop, and rollout servers.

What is requested, without a cluster:

- `plan` — what a run needs, from its settings, and the settings that its pods get
- `names` — labels, names, ports
- `manifests` — the plan as an object of Kubernetes; `pod_template` — its pods
- `cost` — what it requests, as a table

What happens to it:

- `submission` — who submits what, and whose it is; what would be refused later is refused at the start
- `launcher` — `KubernetesLauncher`: submit, look, cancel, wait
- `api` — every call to the API server; `permissions` — what they need
- `observed`, `status`, `diagnosis` — what is there and when to look again, what it comes to, and what to do about it
- `following` — the log of rank 0 as it grows
- `janitor` — when a run must be over, and what dead runs left
- `doctor` — what could keep a run from a cluster
"""
