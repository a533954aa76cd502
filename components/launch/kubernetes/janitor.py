"""JobSets that no process waits for any more. Only those that Evenkeel made are considered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from components.launch.kubernetes.names import OURS, RUN, WORKSPACE, selector
from components.launch.kubernetes.observed import Object, condition, labels, name_of
from components.launch.kubernetes.overdue import last_moment, time_of

LATE = timedelta(minutes=10)
"""How long JobSet's own controller may take to remove what has ended, before we do."""
Alive = Callable[[str, str], bool | None]
"""Whether the flow run is under way that waits for a run, by its id and the workspace that it was submitted from; None
where that is not known. The id alone says too little: who runs the same configuration has a run of the same id."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A JobSet that is to go, and why."""

    name: str
    uid: str
    why: str


class Sweeps(Protocol):
    """What `sweep` needs of a `components.launch.kubernetes.api.Cluster`."""

    def jobsets(self, selector: str) -> list[Object]: ...
    def delete_jobset(self, name: str, uid: str | None = None) -> None: ...


def sweep(cluster: Sweeps, alive: Alive, now: datetime | None = None) -> Iterator[Removal]:
    """Delete them; yields which.

    Args:
        alive: called after the JobSets were listed, so that one that has only just begun is not taken for one that is
            over.

    Raises:
        InputError: the cluster is unreachable, or refuses.
    """
    for removal in decide(cluster.jobsets(selector()), alive, now or datetime.now(UTC)):
        cluster.delete_jobset(removal.name, removal.uid)  # of another uid: it was submitted again
        yield removal


def decide(jobsets: Iterable[Object], alive: Alive, now: datetime) -> list[Removal]:
    """Which are to go. What is not known to be over stays, and what is being deleted already is left alone."""
    found = []
    for jobset in jobsets:
        ours = OURS.items() <= labels(jobset).items()
        if not ours or jobset["metadata"].get("deletionTimestamp"):
            continue
        why = _ended(jobset, now) if _over(jobset) else _forgotten(jobset, alive, now)
        if why:
            found.append(Removal(name_of(jobset), jobset["metadata"]["uid"], why))
    return found


def _over(jobset: Object) -> Object | None:
    return condition(jobset, "Completed") or condition(jobset, "Failed")


def _ended(jobset: Object, now: datetime) -> str:
    """An ended one stays for its ttl; without one for ever."""
    seconds = (jobset.get("spec") or {}).get("ttlSecondsAfterFinished")
    ended = time_of((_over(jobset) or {}).get("lastTransitionTime"))
    if seconds is None or ended is None or now < ended + timedelta(seconds=int(seconds)) + LATE:
        return ""
    return f"it ended at {ended:%Y-%m-%d %H:%M}, and was to stay {seconds} s"


def _forgotten(jobset: Object, alive: Alive, now: datetime) -> str:
    last = last_moment(jobset)
    if last is not None and now > last:
        return f"its deadline was {last:%Y-%m-%d %H:%M}"
    run, workspace = labels(jobset).get(RUN), (jobset["metadata"].get("annotations") or {}).get(WORKSPACE)
    if run and workspace and alive(run, workspace) is False:
        return f"the flow run that waited for {run} is over"
    return ""
