"""When a run must be over, and JobSets that no process waits for any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.names import DEADLINE, OURS, RUN, SELECTOR, WORKSPACE
from components.launch.kubernetes.observed import Object, condition, labels, metadata, name_of, notes, part

LATE = timedelta(minutes=10)
"""How long JobSet's own controller may take to remove what has ended, before we do."""
Alive = Callable[[str, str], bool | None]
"""Whether the flow run is under way that waits for a run, by its id and the workspace that it was submitted from; None
where that is not known. The id alone says too little: who runs the same configuration has a run of the same id."""


def last_moment(jobset: Object) -> datetime | None:
    """After which even its last attempt is over; None where it waits in a queue, or has no limit.

    It was reckoned when the run was submitted, with the restarts that count. Every disruption is one more attempt, and
    the time before a queue let it in was no attempt's. Who waits for a run and who cleans up after dead ones use the
    same, so that neither ends what the other still counts on.
    """
    last = time_of(notes(jobset).get(DEADLINE))
    if last is None or part(jobset, "spec").get("suspend"):
        return None
    restarts = part(jobset, "status")
    disruptions = int(restarts.get("restarts") or 0) - int(restarts.get("restartsCountTowardsMax") or 0)
    return last + disruptions * _attempt(jobset) + _queued(jobset)


def _attempt(jobset: Object) -> timedelta:
    """The longest time of one attempt, with the end of its pods."""
    jobs = [part(one, "template", "spec") for one in part(jobset, "spec").get("replicatedJobs") or ()]
    longest = max((job.get("activeDeadlineSeconds") or 0 for job in jobs), default=0)
    graces = [part(job, "template", "spec").get("terminationGracePeriodSeconds") or 0 for job in jobs]
    return timedelta(seconds=longest + max(graces, default=0))


def _queued(jobset: Object) -> timedelta:
    made = time_of(metadata(jobset).get("creationTimestamp"))
    resumed = time_of((condition(jobset, "Suspended", "False") or {}).get("lastTransitionTime"))
    return resumed - made if made and resumed and resumed > made else timedelta()


def time_of(text: object) -> datetime | None:
    """A time of Kubernetes; None where there is none, or no time."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Removal:
    """A JobSet that is to go, and why."""

    name: str
    uid: str
    why: str


def sweep(cluster: Cluster, alive: Alive, now: datetime | None = None) -> Iterator[Removal]:
    """Delete them; yields which.

    Args:
        alive: called after the JobSets were listed, so that one that has only just begun is not taken for one that is
            over.

    Raises:
        InputError: the cluster is unreachable, or refuses.
    """
    for removal in decide(cluster.jobsets(SELECTOR), alive, now or datetime.now(UTC)):
        cluster.delete_jobset(removal.name, removal.uid)  # of another uid: it was submitted again
        yield removal


def decide(jobsets: Iterable[Object], alive: Alive, now: datetime) -> list[Removal]:
    """Which are to go. What is not known to be over stays, and what is being deleted already is left alone."""
    found = []
    for jobset in jobsets:
        if not OURS.items() <= labels(jobset).items() or metadata(jobset).get("deletionTimestamp"):
            continue
        ended = condition(jobset, "Completed") or condition(jobset, "Failed")
        why = _ended(jobset, ended, now) if ended else _forgotten(jobset, alive, now)
        if why:
            found.append(Removal(name_of(jobset), jobset["metadata"]["uid"], why))
    return found


def _ended(jobset: Object, how: Object, now: datetime) -> str:
    """An ended one stays for its ttl; without one for ever."""
    seconds, ended = part(jobset, "spec").get("ttlSecondsAfterFinished"), time_of(how.get("lastTransitionTime"))
    if seconds is None or ended is None or now < ended + timedelta(seconds=int(seconds)) + LATE:
        return ""
    return f"it ended at {ended:%Y-%m-%d %H:%M}, and was to stay {seconds} s"


def _forgotten(jobset: Object, alive: Alive, now: datetime) -> str:
    last = last_moment(jobset)
    if last is not None and now > last:
        return f"its deadline was {last:%Y-%m-%d %H:%M}"
    run, workspace = labels(jobset).get(RUN), notes(jobset).get(WORKSPACE)
    if run and workspace and alive(run, workspace) is False:
        return f"the flow run that waited for {run} is over"
    return ""
