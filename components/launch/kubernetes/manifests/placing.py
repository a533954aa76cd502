"""Which nodes pods may be put on, and which they should share."""

from __future__ import annotations

from typing import Any

from components.config.kubernetes import Toleration
from components.launch.kubernetes.names import COMPONENT, RUN
from components.launch.kubernetes.plan import RolePlan, RunPlan

KUEUE_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"


def placement(plan: RunPlan, role: RolePlan) -> tuple[dict[str, str], dict[str, Any]]:
    """Annotations of the pod, and fields of its specification."""
    pods, annotations = role.pods, dict[str, str]()
    spec: dict[str, Any] = {}
    if pods.node_selector:
        spec["nodeSelector"] = dict(sorted(pods.node_selector.items()))
    if pods.tolerations:
        spec["tolerations"] = [_toleration(one) for one in pods.tolerations]
    if pods.priority_class:
        spec["priorityClassName"] = pods.priority_class
    if pods.runtime_class:
        spec["runtimeClassName"] = pods.runtime_class
    if pods.topology and plan.how.queue:
        annotations[KUEUE_TOPOLOGY] = pods.topology  # Kueue places the pods that it admits
    elif pods.topology:
        spec["affinity"] = {"podAffinity": _together(plan, role, pods.topology)}
    return annotations, spec


def _together(plan: RunPlan, role: RolePlan, key: str) -> dict[str, Any]:
    same = {RUN: plan.labels[RUN], COMPONENT: role.name}
    term = {"labelSelector": {"matchLabels": same}, "topologyKey": key}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _toleration(taint: Toleration) -> dict[str, Any]:
    found: dict[str, Any] = {"key": taint.key, "operator": "Exists" if taint.value is None else "Equal"}
    found |= {} if taint.value is None else {"value": taint.value}
    return found | ({} if taint.effect is None else {"effect": taint.effect})
