"""The word by which driver and learner know each other; no setting, no argument and no log ever holds it."""

from __future__ import annotations

import base64
from typing import Any

from components.launch.kubernetes.plan import RunPlan

ENTRY = "key"


def secret(plan: RunPlan, key: str, owner: dict[str, Any] | None = None) -> dict[str, Any]:
    """A Secret that goes when the JobSet ``owner`` (as the server returned it) goes."""
    metadata: dict[str, Any] = {
        "name": plan.secret,
        "namespace": plan.how.namespace,
        "labels": dict(plan.labels),
    }
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
            }
        ]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "immutable": True,
        "data": {ENTRY: base64.b64encode(key.encode()).decode()},
    }


def key_variable(plan: RunPlan) -> dict[str, Any]:
    """The environment variable that holds it."""
    reference = {"name": plan.secret, "key": ENTRY}
    return {"name": "EVENKEEL_LEARNER_KEY", "valueFrom": {"secretKeyRef": reference}}
