"""Small objects for tests of the client."""

from __future__ import annotations

from typing import Any

from components.launch.kubernetes.names import OURS, RUN


def jobset(name: str = "demo-1", spec: str = "c0ffee", **metadata: Any) -> dict[str, Any]:
    """What a launcher would create."""
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": name,
            "labels": {**OURS, RUN: name},
            "annotations": {"evenkeel/spec": spec},
            **metadata,
        },
        "spec": {"replicatedJobs": []},
    }


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}}
