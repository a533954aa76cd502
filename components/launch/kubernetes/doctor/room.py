"""Whether there is room for what a run requests: in the namespace's quotas and on nodes; and for its files, on a claim
that many nodes may write to or in a bucket with conditional writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from components.checks import Check
from components.config.kubernetes import PodSettings, S3State, Toleration, VolumeState
from components.config.quantities import amount
from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.api.resources import CLAIMS, NODES, QUOTAS, STORAGE_CLASSES
from components.launch.kubernetes.names import GPU
from components.launch.kubernetes.observed import Object, condition, labels, name_of, part
from components.launch.kubernetes.plan import RolePlan, RunPlan, requests
from components.words import plural

RUN = "doctor"
"""Of the run that is planned, and never submitted."""
KEEP_OUT = ("NoSchedule", "NoExecute")
MANY, FIRST_POD = "ReadWriteMany", "WaitForFirstConsumer"


def quotas(cluster: Cluster, plan: RunPlan) -> Iterator[Check]:
    """What a run would be refused for ever, and what it would have to wait for."""
    found = cluster.listed(QUOTAS)
    requested = _requested(plan)
    for quota in found:
        name, status = f"quota {name_of(quota)}", part(quota, "status")
        hard, used = _amounts(status.get("hard")), _amounts(status.get("used"))
        if part(quota, "spec").get("scopeSelector") or part(quota, "spec").get("scopes"):
            yield Check("quota", "ok", f"{name} is for some pods only, and was not looked at")
            continue
        mine = {key: value for key, value in requested.items() if key in hard}
        left = {key: hard[key] - used.get(key, Decimal()) for key in mine}
        look_there = f"kubectl -n {cluster.namespace} describe resourcequota {name_of(quota)}"
        if never := _lacking(hard, mine):
            fix = "request less (launch.kubernetes), or have it raised"
            yield Check("quota", "fail", f"{name} never has room for a run: {'; '.join(never)}", fix)
        elif now := _lacking(left, mine):
            yield Check("quota", "warn", f"{name} has no room now: {'; '.join(now)}", f"wait; {look_there}")
        else:
            yield Check("quota", "ok", f"{name} has room")
    if not found:
        yield Check("quota", "ok", "none in the namespace")


def _requested(plan: RunPlan) -> dict[str, Decimal]:
    """By the names that quotas have for it."""
    total: dict[str, Decimal] = {}
    for role in plan.roles:
        for resource, value in _of_pod(role.pods).items():
            total[resource] = total.get(resource, Decimal()) + value * role.count
    count, jobs = sum(role.count for role in plan.roles), len(plan.roles)
    found = {f"{kind}.{name}": value for name, value in total.items() for kind in ("requests", "limits")}
    found |= {name: value for name, value in total.items() if name != GPU}
    found |= {"pods": Decimal(count), "count/pods": Decimal(count), "count/jobs.batch": Decimal(jobs)}
    return found | {"count/jobsets.jobset.x-k8s.io": Decimal(1), "services": Decimal(1), "count/services": Decimal(1)}


def nodes(cluster: Cluster, plan: RunPlan) -> Iterator[Check]:
    """For every role, whether its pods would fit if nothing else were there."""
    ready = [
        node
        for node in cluster.listed(NODES)
        if condition(node, "Ready") is not None and not part(node, "spec").get("unschedulable")
    ]
    for role in plan.roles:
        yield _room(role, ready)


def _room(role: RolePlan, ready: list[Object]) -> Check:
    section, requested = f"launch.kubernetes.{role.name}", _of_pod(role.pods)
    wanted = f"{plural(role.count, f'{role.name} pod')} with " + ", ".join(
        f"{name} {_shown(name, value)}" for name, value in requested.items() if name != "ephemeral-storage"
    )
    allowed = [node for node in ready if _allowed(node, role.pods)]
    if not allowed:
        fix = f"correct {section}.node_selector and .tolerations (kubectl get nodes), unless an autoscaler adds some"
        return Check("nodes", "warn", f"{wanted}: no node may take them", fix)
    free = [_amounts(part(node, "status").get("allocatable")) for node in allowed]
    places = sum(int(min(there.get(name, Decimal()) // value for name, value in requested.items())) for there in free)
    if places >= role.count:
        return Check("nodes", "ok", f"{wanted}: room for {places}")
    if places:
        fix = "add nodes, request fewer, or see that an autoscaler does"
        return Check("nodes", "warn", f"{wanted}: room for {places}", fix)
    largest = {name: max(there.get(name, Decimal()) for there in free) for name in requested}
    short = "; ".join(_lacking(largest, requested)) or "not all on one node"
    settings = f"{section}.cpu, .memory, .disk or .gpus"
    return Check("nodes", "fail", f"{wanted}: no node is large enough ({short})", f"request less ({settings})")


def _allowed(node: Object, pods: PodSettings) -> bool:
    taints = part(node, "spec").get("taints") or ()
    kept_out = [taint for taint in taints if taint.get("effect") in KEEP_OUT]
    return pods.node_selector.items() <= labels(node).items() and all(
        any(_tolerates(one, taint) for one in pods.tolerations) for taint in kept_out
    )


def _tolerates(one: Toleration, taint: Mapping[str, Any]) -> bool:
    same = one.key == taint.get("key") and one.effect in (None, taint.get("effect"))
    return same and one.value in (None, taint.get("value") or "")


def _amounts(found: Mapping[str, Any] | None) -> dict[str, Decimal]:
    return {name: amount(value) for name, value in (found or {}).items()}


def _of_pod(pods: PodSettings) -> dict[str, Decimal]:
    return _amounts(requests(pods))


def _shown(resource: str, value: Decimal) -> str:
    """An amount for people: bytes in GiB, everything else as it is."""
    if resource.rpartition(".")[2] in ("memory", "storage", "ephemeral-storage"):
        return f"{value / 2**30:.4g} GiB"
    return f"{value:.4g}"


def _lacking(there: Mapping[str, Decimal], requested: Mapping[str, Decimal]) -> list[str]:
    """A sentence for what is requested and not there."""
    return [
        f"{name} {_shown(name, value)} of {_shown(name, there.get(name, Decimal()))}"
        for name, value in requested.items()
        if value > there.get(name, Decimal())
    ]


def claim(cluster: Cluster, how: VolumeState) -> Iterator[Check]:
    """It is there, bound or going to be, and may be mounted by many nodes."""
    name, section, found = how.claim, "launch.kubernetes.shared.claim", cluster.found(CLAIMS, how.claim)
    modes, kind = part(found, "spec").get("accessModes") or [], part(found, "spec").get("storageClassName")
    phase, look = part(found, "status").get("phase"), f"kubectl -n {cluster.namespace} describe pvc {name}"
    if found is None:
        fix = f"create it (k8s/components/shared-volume), or correct {section}"
        yield Check("claim", "fail", f"there is no claim {name} in {cluster.namespace}", fix)
    elif MANY not in modes:
        fix = f"create a claim with accessModes [{MANY}] (k8s/components/shared-volume) and name it in {section}"
        yield Check("claim", "fail", f"{name} is {', '.join(modes)}: pods on several nodes need {MANY}", fix)
    elif phase == "Bound":
        yield Check("claim", "ok", f"{name}, {MANY}, bound")
    elif phase == "Lost":
        yield Check("claim", "fail", f"the volume of {name} is gone", look)
    elif not kind:
        yield Check("claim", "warn", f"{name} has no volume yet, and names no storage class that makes one", look)
    elif (storage := cluster.found(STORAGE_CLASSES, kind)) is None:
        yield Check("claim", "fail", f"{name} waits for a storage class {kind}, which is not there", look)
    elif storage.get("volumeBindingMode") == FIRST_POD:
        yield Check("claim", "ok", f"{name}, {MANY}, gets its volume of {kind} with the first pod")
    else:
        yield Check("claim", "warn", f"{name} has no volume yet (storage class {kind})", look)


def volume(how: VolumeState, user: int | None) -> Iterator[Check]:
    """Runs are submitted from a folder on the volume, by a user that pods may be."""
    if not Path(how.path).is_dir():
        fix = f"mount {how.claim} at {how.path} where runs are submitted, or set launch.kubernetes.shared.kind s3"
        yield Check("volume", "warn", f"{how.path} is not on this machine, so no run can be submitted from here", fix)
    elif os.getuid() == 0 and user is None:
        fix = "submit runs as another user, or set launch.kubernetes.user, and let that user write there"
        yield Check("volume", "fail", f"{how.path} is here, but you are root, and pods never are", fix)
    else:
        yield Check("volume", "ok", f"{how.path} is here")


def bucket(how: S3State) -> Iterator[Check]:
    """What two writers must never do, its server must refuse."""
    from components.pods.depot import Depot  # loads boto3
    from components.registry.s3.examined import examined

    otherwise = "use a server with conditional writes, such as AWS S3 or MinIO, or launch.kubernetes.shared.kind volume"
    place = Depot(f"{how.uri}/{RUN}", how.endpoint_url, how.region).bucket("state")
    yield examined("bucket", place, how.uri, otherwise)
