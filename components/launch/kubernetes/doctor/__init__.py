"""`evenkeel doctor --kubernetes`: what could keep a run from a cluster, and the command that fixes it.

- `looking` — a check that may not look says so, and a check that cannot be made fails
- `access` — the server, its version, JobSet, the namespace, and what we may do there
- `demand` — what the configuration requests
- `room` — whether the namespace's quotas and the nodes have that
- `names` — what the configuration names is there: accounts, queues, priorities
- `storage` — how pods get at the run's files: a claim, or a bucket
- `amounts` — quantities as Kubernetes writes them
"""

from collections.abc import Callable, Iterator

from components.checks import Check
from components.config import Settings
from components.errors import CorrectableError
from components.launch.kubernetes.api import Cluster, Examination
from components.launch.kubernetes.doctor.access import client, installed, namespace, reached, rights
from components.launch.kubernetes.doctor.demand import demand
from components.launch.kubernetes.doctor.looking import failed
from components.launch.kubernetes.doctor.names import named
from components.launch.kubernetes.doctor.room import nodes, quotas
from components.launch.kubernetes.doctor.storage import shared
from components.launch.kubernetes.plan import RunPlan

ALWAYS: tuple[Callable[[Examination], Iterator[Check]], ...] = (installed, namespace, rights)
FOR_A_RUN: tuple[Callable[[Examination, RunPlan], Iterator[Check]], ...] = (named, quotas, nodes, shared)
NAMESPACE = "evenkeel"
"""The default."""


def examine(settings: Settings) -> Iterator[Check]:
    """Every check, as far as there is a cluster; what the run requests only where the configuration has a section for
    it (`launch.kubernetes`).
    """
    how = settings.launch.kubernetes
    yield client()
    try:
        cluster = Cluster.connect(how.namespace if how else NAMESPACE, how.context if how else None)
    except CorrectableError as error:
        yield failed("cluster", error)
        return
    look = Examination(cluster)
    yield reached(cluster, look)
    for check in ALWAYS:
        yield from check(look)
    if how is None:
        fix = "name a configuration with launch.kubernetes: --config configs/kubernetes.yaml"
        yield Check("run", "warn", "the configuration has no launch.kubernetes, so a run's requests are unknown", fix)
        return
    try:
        plan = demand(settings, how)
    except CorrectableError as error:
        yield failed("run", error)
        return
    for one in FOR_A_RUN:
        yield from one(look, plan)


__all__ = ["examine"]
