"""Who may do what in a cluster: exactly what the requests of `api` need, by role.

`k8s/` grants this and nothing else. Tests compare the table with the requests that are really made.
"""

from __future__ import annotations

from components.launch.kubernetes.names import GROUP

Permission = tuple[str, str, str]
"""API group (`""` is the core), resource with its subresource, verb."""

KUEUE = "kueue.x-k8s.io"
ROLES: dict[str, frozenset[Permission]] = {
    # In the namespace of the runs: whoever submits them, looks at them and cleans up after them.
    "launcher": frozenset(
        {(GROUP, "jobsets", verb) for verb in ("create", "get", "list", "watch", "delete")}
        | {("batch", "jobs", "list"), ("", "pods", "list"), ("", "pods/log", "get"), ("", "events", "list")}
    ),
    # In that namespace too: `evenkeel doctor --kubernetes`. The namespace itself counts as one of its own objects.
    "doctor": frozenset(
        {
            ("", "namespaces", "get"),
            ("", "resourcequotas", "list"),
            ("", "persistentvolumeclaims", "get"),
            ("", "serviceaccounts", "get"),
            (KUEUE, "localqueues", "get"),
        }
    ),
    # Of the whole cluster, which needs a ClusterRole; without it the doctor states what it could not look at.
    "doctor-cluster": frozenset(
        {
            ("", "nodes", "list"),
            ("storage.k8s.io", "storageclasses", "get"),
            ("scheduling.k8s.io", "priorityclasses", "get"),
        }
    ),
}
EVERYONE: frozenset[Permission] = frozenset({("authorization.k8s.io", "selfsubjectaccessreviews", "create")})
"""What a cluster allows everyone who is logged in (system:basic-user), so nothing has to grant it. So it does /version
and the list of API versions, which are no resources (system:discovery)."""
