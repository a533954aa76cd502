"""Every request to the API server of a cluster. Objects go in and come out as plain dictionaries.

- `cluster` — `Cluster`: what a launcher and `evenkeel doctor --kubernetes` need, one method a request; nothing is
  created twice, even if an answer is lost
- `requests` — which failures are worth another attempt, and how long a request may take in all
- `connection` — one HTTP exchange, with the kubeconfig or the pod's own account; nothing else imports `kubernetes`
- `kubeconfig` — which file and which context that is
- `resources` — the kinds of objects, their addresses, and the verbs
- `errors` — a request that failed, and what is raised for it
- `wording` — the same for a person: what is wrong, and the command that fixes it
"""

from components.launch.kubernetes.api.cluster import Cluster
from components.launch.kubernetes.api.errors import Exists, Refused, Unreachable
from components.launch.kubernetes.api.requests import Patience

__all__ = ["Cluster", "Exists", "Patience", "Refused", "Unreachable"]
