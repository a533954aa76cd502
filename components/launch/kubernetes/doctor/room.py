"""Whether the namespace's quotas and the nodes have what a run requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from components.checks import Check
from components.config.kubernetes import PodSettings, Toleration
from components.launch.kubernetes.api import Examination
from components.launch.kubernetes.doctor.amounts import GPU, amount, lacking, of_pod, shown
from components.launch.kubernetes.doctor.looking import Found, looks_at
from components.launch.kubernetes.observed import Object, condition, labels, name_of
from components.launch.kubernetes.plan import RolePlan, RunPlan
from components.words import plural

KEEP_OUT = ("NoSchedule", "NoExecute")


@looks_at("quota")
def quotas(look: Examination, plan: RunPlan) -> Found:
    """What a run would be refused for ever, and what it would have to wait for."""
    found = look.quotas()
    requested = _requested(plan)
    for quota in found:
        name, status = f"quota {name_of(quota)}", quota.get("status") or {}
        hard, used = _amounts(status.get("hard")), _amounts(status.get("used"))
        if (quota.get("spec") or {}).get("scopeSelector") or (quota.get("spec") or {}).get("scopes"):
            yield Check("quota", "ok", f"{name} is for some pods only, and was not looked at")
            continue
        mine = {key: value for key, value in requested.items() if key in hard}
        left = {key: hard[key] - used.get(key, Decimal()) for key in mine}
        look_there = f"kubectl -n {look.namespace} describe resourcequota {name_of(quota)}"
        if never := lacking(hard, mine):
            fix = "request less (launch.kubernetes), or have it raised"
            yield Check("quota", "fail", f"{name} never has room for a run: {'; '.join(never)}", fix)
        elif now := lacking(left, mine):
            yield Check("quota", "warn", f"{name} has no room now: {'; '.join(now)}", f"wait; {look_there}")
        else:
            yield Check("quota", "ok", f"{name} has room")
    if not found:
        yield Check("quota", "ok", "none in the namespace")


def _requested(plan: RunPlan) -> dict[str, Decimal]:
    """By the names that quotas have for it."""
    total: Counter[str] = Counter()
    for role in plan.roles:
        for resource, value in of_pod(role.pods).items():
            total[resource] += value * role.count  # type: ignore[assignment]
    count, jobs = sum(role.count for role in plan.roles), len(plan.roles)
    found = {f"{kind}.{name}": Decimal(value) for name, value in total.items() for kind in ("requests", "limits")}
    found |= {name: Decimal(value) for name, value in total.items() if name != GPU}
    found |= {"pods": Decimal(count), "count/pods": Decimal(count), "count/jobs.batch": Decimal(jobs)}
    return found | {"count/jobsets.jobset.x-k8s.io": Decimal(1), "services": Decimal(1), "count/services": Decimal(1)}


@looks_at("nodes")
def nodes(look: Examination, plan: RunPlan) -> Found:
    """For every role, whether its pods would fit if nothing else were there."""
    ready = [node for node in look.nodes() if _takes_pods(node)]
    for role in plan.roles:
        yield _room(role, ready)


def _room(role: RolePlan, ready: list[Object]) -> Check:
    section, requested = f"launch.kubernetes.{role.name}", of_pod(role.pods)
    wanted = f"{plural(role.count, f'{role.name} pod')} with " + ", ".join(
        f"{name} {shown(name, value)}" for name, value in requested.items() if name != "ephemeral-storage"
    )
    allowed = [node for node in ready if _allowed(node, role.pods)]
    if not allowed:
        fix = f"correct {section}.node_selector and .tolerations (kubectl get nodes), unless an autoscaler adds some"
        return Check("nodes", "warn", f"{wanted}: no node may take them", fix)
    free = [_amounts((node.get("status") or {}).get("allocatable")) for node in allowed]
    places = sum(_times(there, requested) for there in free)
    if places >= role.count:
        return Check("nodes", "ok", f"{wanted}: room for {places}")
    if places:
        fix = "add nodes, request fewer, or see that an autoscaler does"
        return Check("nodes", "warn", f"{wanted}: room for {places}", fix)
    largest = {name: max(there.get(name, Decimal()) for there in free) for name in requested}
    short = "; ".join(lacking(largest, requested)) or "not all on one node"
    settings = f"{section}.cpu, .memory, .disk or .gpus"
    return Check("nodes", "fail", f"{wanted}: no node is large enough ({short})", f"request less ({settings})")


def _takes_pods(node: Object) -> bool:
    return condition(node, "Ready") is not None and not (node.get("spec") or {}).get("unschedulable")


def _allowed(node: Object, pods: PodSettings) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    kept_out = [taint for taint in taints if taint.get("effect") in KEEP_OUT]
    return pods.node_selector.items() <= labels(node).items() and all(
        any(_tolerates(one, taint) for one in pods.tolerations) for taint in kept_out
    )


def _tolerates(one: Toleration, taint: Mapping[str, Any]) -> bool:
    same = one.key == taint.get("key") and one.effect in (None, taint.get("effect"))
    return same and one.value in (None, taint.get("value") or "")


def _times(there: Mapping[str, Decimal], requested: Mapping[str, Decimal]) -> int:
    """How often it fits."""
    return int(min(there.get(name, Decimal()) // value for name, value in requested.items()))


def _amounts(found: Mapping[str, Any] | None) -> dict[str, Decimal]:
    return {name: amount(value) for name, value in (found or {}).items()}
