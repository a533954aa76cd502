"""A `RunPlan` as objects of Kubernetes: plain dictionaries, the same for the same plan.

- `jobset` — the one object of a run: its replicated jobs, when it has succeeded, what a failure means
- `failures` — exit codes and disruptions, as jobs and as the JobSet see them
- `pods` — what all pods have in common: security, resources, volumes
- `placing` — which nodes they may be put on
- `state` — how a pod gets at the run's files: a volume, or an init container that fetches them
- `probes` — when a server is up, and when it is not
"""

from components.launch.kubernetes.manifests.jobset import jobset

__all__ = ["jobset"]
