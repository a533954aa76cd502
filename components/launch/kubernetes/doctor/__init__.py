"""`evenkeel doctor --kubernetes`: what could keep a run from a cluster, and the command that fixes it.

- `access` — the server, its version, JobSet, the namespace, our rights there, and what the configuration names
- `room` — whether the namespace's quotas and the nodes have what is requested
- `storage` — how pods get at the run's files: a claim, or a bucket
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from components.checks import Check
from components.config import Settings
from components.config.kubernetes import KubernetesSettings, VolumeState
from components.errors import CorrectableError
from components.launch.kubernetes.api import Cluster, Refused
from components.launch.kubernetes.doctor.access import (
    account,
    client,
    installed,
    namespace,
    priority,
    priority_classes,
    queue,
    reached,
    rights,
)
from components.launch.kubernetes.doctor.room import nodes, quotas
from components.launch.kubernetes.doctor.storage import bucket, claim, volume
from components.launch.kubernetes.names import MAIN
from components.launch.kubernetes.plan import WORK, RunPlan, Submission, plan_run

ALWAYS: dict[str, Callable[[Cluster], Iterator[Check]]] = {
    "jobset": installed,
    "namespace": namespace,
    "rights": rights,
}
FOR_A_RUN: dict[str, Callable[[Cluster, RunPlan], Iterator[Check]]] = {
    "account": account,
    "queue": queue,
    "quota": quotas,
    "nodes": nodes,
    "claim": claim,
    "volume": volume,
    "bucket": bucket,
}
NAMESPACE = "evenkeel"
"""The default."""
FORBIDDEN = 403


def examine(settings: Settings) -> Iterator[Check]:
    """Every check, as far as there is a cluster; what the run requests only where the configuration has a section for
    it (`launch.kubernetes`).
    """
    how = settings.launch.kubernetes
    yield client()
    try:
        cluster = Cluster.connect(how.namespace if how else NAMESPACE, how.context if how else None)
    except CorrectableError as error:
        yield _failed("cluster", error)
        return
    yield reached(cluster)
    for name, check in ALWAYS.items():
        yield from _as_far_as_possible(name, check(cluster))
    if how is None:
        fix = "name a configuration with launch.kubernetes: --config configs/kubernetes.yaml"
        yield Check("run", "warn", "the configuration has no launch.kubernetes, so a run's requests are unknown", fix)
        return
    try:
        plan = _demand(settings, how)
    except CorrectableError as error:
        yield _failed("run", error)
        return
    for name, of_a_run in FOR_A_RUN.items():
        yield from _as_far_as_possible(name, of_a_run(cluster, plan))
    for name in priority_classes(plan):  # each of its own: one that cannot be looked at leaves the others
        yield from _as_far_as_possible("priority", priority(cluster, name))


def _as_far_as_possible(name: str, found: Iterator[Check]) -> Iterator[Check]:
    """What a check finds. Where we may not look, nothing is known: that is a warning, and no reason to stop."""
    try:
        yield from found
    except CorrectableError as error:
        if isinstance(error, Refused) and error.status == FORBIDDEN:
            fix = f"have somebody look who may, or let us: k8s/base/doctor.yaml; {error.how or ''}"
            yield Check(name, "warn", f"it cannot be looked at: {error.what}", fix.rstrip("; "))
        else:
            yield _failed(name, error)


def _failed(name: str, error: CorrectableError) -> Check:
    where = f" ({error.where})" if error.where else ""
    return Check(name, "fail", f"{error.what}{where}", error.how or "")


def _demand(settings: Settings, how: KubernetesSettings) -> RunPlan:
    """The plan of a training run that is never submitted, in a folder that pods would see."""
    run = "doctor"
    folder = Path(how.shared.path if isinstance(how.shared, VolumeState) else WORK) / run
    return plan_run(settings, Submission(MAIN, folder, run, how.owner or run, "", "", datetime.now(UTC)))


__all__ = ["examine"]
