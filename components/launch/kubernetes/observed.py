"""What a cluster shows of a run, as dictionaries that the API server gives; and when it is worth another look."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from components.attempts import Attempts
from components.errors import CorrectableError
from components.launch.kubernetes.names import ATTEMPT, Role

if TYPE_CHECKING:
    from components.launch.kubernetes.api import Cluster

Object = dict[str, Any]
ROLES: tuple[Role, ...] = get_args(Role)
JOBSET_NAME, JOBSET_UID = "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/jobset-uid"
REPLICATED = "jobset.sigs.k8s.io/replicatedjob-name"
"""Labels that JobSet writes on jobs and pods."""
INDEX = "batch.kubernetes.io/job-completion-index"
"""Annotation that the Job controller writes on pods."""
SECONDS = len("2026-01-01T00:00:00")
MOST = 10.0
"""Seconds after which it is worth looking in any case: pods change without their JobSet changing."""
FIRST_PAUSE, LEAST = 0.5, 0.2
"""Seconds between a watch that failed and the next one, to begin with; and between two looks."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A JobSet (None: there is none of this name), its jobs and pods, and what is reported of any of them but what is
    normal. Jobs and pods of attempts before the present one are among them while they are being deleted.
    """

    jobset: Object | None
    jobs: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    events: tuple[Object, ...] = ()
    name: str = ""

    @property
    def restarts(self) -> int:
        return int(part(self.jobset, "status").get("restarts") or 0)

    def present(self, objects: tuple[Object, ...]) -> list[Object]:
        """Those of the present attempt."""
        now = str(self.restarts)
        return [one for one in objects if labels(one).get(ATTEMPT, now) == now]

    def pods_of(self, role: Role) -> list[Object]:
        """The present attempt's pods of a role."""
        return [pod for pod in self.present(self.pods) if role_of(pod) == role]

    def leading(self) -> list[Object]:
        """Of these the pods with rank 0, which runs the stage."""
        return [pod for pod in self.pods_of("learner") if index_of(pod) == 0]


def gather(cluster: Cluster, name: str, uid: str | None = None) -> Observed:
    """Look at a run. The JobSet is read first: what is decided from it is never older than the rest.

    Args:
        uid: of the JobSet that is meant; another one of its name is somebody else's, as if there were none.

    Raises:
        InputError: the cluster is unreachable.
    """
    jobset = cluster.jobset(name)
    if jobset and uid not in (None, jobset["metadata"]["uid"]):
        jobset = None
    selector = f"{JOBSET_NAME}={name}"
    uid = jobset["metadata"]["uid"] if jobset else uid
    jobs = _of(uid, cluster.jobs(selector))
    pods = _of(uid, cluster.pods(selector))
    return Observed(jobset, jobs, pods, _about(name, jobset, cluster.events()), name)


def changes(
    cluster: Cluster, name: str, most: float = MOST, sleep: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """Yields at once, then whenever the JobSet has changed, and ``most`` seconds after that at the latest.

    A watch is only a hint: the state is always read from the cluster (`gather`). It begins with the JobSet's
    present state every time, so there is no version that could be too old to go on from, and what happened between a
    look and the watch is seen.

    It never ends by itself: not when the JobSet is gone, when the server restarts, or when watching is not allowed.
    """
    yield
    seen: tuple[object, ...] | None = None
    """The version that was there at the latest look, as far as is known."""
    attempts = Attempts(FIRST_PAUSE, most, sleep=sleep)
    while True:
        began = time.monotonic()
        try:
            for event in cluster.watch(name, most):
                version = _version(event)
                if version != seen and event.get("type") != "BOOKMARK":
                    seen, attempts = version, Attempts(FIRST_PAUSE, most, sleep=sleep)
                    sleep(LEAST)  # a change seldom comes alone
                    yield
            ended = time.monotonic() - began
        except CorrectableError:  # `gather` raises the error
            ended = 0.0
        if ended < most / 2:  # it broke off, or the server is in a hurry
            attempts.again()
        else:
            attempts = Attempts(FIRST_PAUSE, most, sleep=sleep)
        yield


def _version(event: Object) -> tuple[object, ...]:
    """The version of an object: its present state, sent again, is no change."""
    found = part(event, "object", "metadata")
    return found.get("uid"), found.get("resourceVersion"), event.get("type") == "DELETED"


def _of(uid: str | None, objects: list[Object]) -> tuple[Object, ...]:
    """Without those of an earlier JobSet of this name that are still going away."""
    return tuple(one for one in objects if uid is None or labels(one).get(JOBSET_UID, uid) == uid)


def _about(name: str, jobset: Object | None, events: list[Object]) -> tuple[Object, ...]:
    """Events of the JobSet, and of its jobs and pods by the way they are called, since it is there."""
    pattern = re.compile(rf"{re.escape(name)}(-({'|'.join(ROLES)})-\d+.*)?")
    since = jobset["metadata"].get("creationTimestamp", "") if jobset else ""
    found = [one for one in events if pattern.fullmatch(about(one))]
    return tuple(sorted((one for one in found if when(one)[:SECONDS] >= since[:SECONDS]), key=when))


def when(event: Object) -> str:
    """When it was last reported, in RFC 3339: as text it sorts up to the second."""
    latest = part(event, "series").get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return str(latest or metadata(event).get("creationTimestamp") or "")


def about(event: Object) -> str:
    """The name of the object that it is about."""
    return str(part(event, "involvedObject").get("name") or "")


def part(one: Object | None, *keys: str) -> Object:
    """What is below these keys; empty where the server leaves it out."""
    for key in keys:
        one = (one or {}).get(key)
    return one or {}


def metadata(one: Object) -> Object:
    return part(one, "metadata")


def labels(one: Object) -> dict[str, str]:
    return part(one, "metadata", "labels")


def notes(one: Object) -> dict[str, str]:
    """Its annotations."""
    return part(one, "metadata", "annotations")


def name_of(one: Object) -> str:
    """The name of an object, or of a container."""
    return str(metadata(one).get("name") or one.get("name") or "")


def role_of(one: Object) -> Role | None:
    """The role of a job or pod."""
    found = labels(one).get(REPLICATED)
    return next((role for role in ROLES if role == found), None)


def index_of(pod: Object) -> int:
    """The number of a pod among those of its job."""
    return int(notes(pod).get(INDEX, 0))


def condition(one: Object, kind: str, status: str = "True") -> Object | None:
    """The condition of this type, where it has this status."""
    conditions = part(one, "status").get("conditions") or ()
    return next((found for found in conditions if found.get("type") == kind and found.get("status") == status), None)


def containers(pod: Object) -> list[Object]:
    """Statuses of its containers, those of its beginning first."""
    status = part(pod, "status")
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def endings(container: Object) -> list[Object]:
    """How a container's runs ended, the present or last one first."""
    ended = [part(container, state, "terminated") for state in ("state", "lastState")]
    return [one for one in ended if one]
