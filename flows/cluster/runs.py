"""What `evenkeel cluster` shows and does: the runs of a namespace, their logs, their end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from components.errors import InputError
from components.launch.base import JobStatus
from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.diagnosis import Finding, diagnose
from components.launch.kubernetes.names import OWNER, RUN, STAGE, Role, jobset_name, selector
from components.launch.kubernetes.observed import ROLES, Observed, gather, index_of, name_of
from components.launch.kubernetes.status import status_of


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """A JobSet as a person sees it."""

    name: str
    run: str
    stage: str
    owner: str
    since: str
    status: JobStatus
    restarts: int
    pods: dict[str, tuple[int, int]]
    """Role -> how many run, and how many are wanted."""

    @property
    def running(self) -> int:
        return sum(running for running, _ in self.pods.values())

    @property
    def wanted(self) -> int:
        return sum(wanted for _, wanted in self.pods.values())

    @property
    def age(self) -> float:
        """Seconds since it was submitted."""
        return (datetime.now(UTC) - datetime.fromisoformat(self.since)).total_seconds()

    def to_dict(self) -> dict[str, Any]:
        said = {"state": self.status.state, "exit_code": self.status.exit_code, "message": self.status.message}
        fields = ("name", "run", "stage", "owner", "since", "restarts", "pods")
        return {name: getattr(self, name) for name in fields} | said


def all_runs(cluster: Cluster) -> list[ClusterRun]:
    """Those of the namespace, the newest first."""
    found = [_run(gather(cluster, name_of(one))) for one in cluster.jobsets(selector())]
    return sorted((one for one in found if one is not None), key=lambda one: one.since, reverse=True)


def find(cluster: Cluster, run: str, stage: str = "train") -> Observed:
    """A run by its id, or by the name of its JobSet. Where there is none it is an `InputError`."""
    for name in dict.fromkeys((jobset_name(run, stage), run)):
        observed = gather(cluster, name)
        if observed.jobset is not None:
            return observed
    lists = f"`evenkeel cluster status -n {cluster.namespace}` lists what there is, and of which stage (--stage)"
    how = f"{lists}; ended ones go after launch.kubernetes.ttl seconds"
    raise InputError(f"there is no run {run!r} on the cluster", where=f"namespace {cluster.namespace}", how=how)


def describe(observed: Observed) -> tuple[ClusterRun | None, list[Finding]]:
    """A run, and what is the matter with it."""
    return _run(observed), diagnose(observed)


def log(cluster: Cluster, observed: Observed, role: Role, index: int, *, follow: bool) -> Iterator[str]:
    """What the pod of a role has printed, in the present attempt. A pod that is not there is an `InputError`."""
    pods = sorted(observed.pods_of(role), key=name_of)
    chosen = [pod for pod in pods if index_of(pod) == index]
    if not chosen:
        there = ", ".join(f"{name} {index_of(pod)}" for name in ROLES for pod in observed.pods_of(name)) or "none"
        raise InputError(f"no pod {role} {index} is there", where=observed.name, how=f"there are: {there}")
    return cluster.log(name_of(chosen[-1]), role, follow=follow)


def _run(observed: Observed) -> ClusterRun | None:
    jobset = observed.jobset
    if jobset is None:  # it went away between two looks
        return None
    metadata = jobset["metadata"]
    named, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    wanted = {one["name"]: one["template"]["spec"].get("completions", 1) for one in jobset["spec"]["replicatedJobs"]}
    return ClusterRun(
        name=observed.name,
        run=named.get(RUN, ""),
        stage=annotations.get(STAGE, ""),
        owner=named.get(OWNER, ""),
        since=metadata.get("creationTimestamp", ""),
        status=status_of(observed),
        restarts=observed.restarts,
        pods={role: (_running(observed, role), count) for role, count in wanted.items()},
    )


def _running(observed: Observed, role: Any) -> int:
    return sum((pod.get("status") or {}).get("phase") == "Running" for pod in observed.pods_of(role))
