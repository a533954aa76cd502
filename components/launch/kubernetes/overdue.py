"""When a run must be over: each attempt has its deadline, which the cluster itself keeps.

Who waits for a run and who cleans up after dead ones use the same, so that neither ends what the other still counts on.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from components.launch.kubernetes.names import DEADLINE
from components.launch.kubernetes.observed import Object, condition, metadata


def last_moment(jobset: Object) -> datetime | None:
    """After which even its last attempt is over; None where it waits in a queue, or has no limit.

    It was reckoned when the run was submitted, with the restarts that count. Every disruption is one more attempt, and
    the time before a queue let it in was no attempt's.
    """
    last = time_of((metadata(jobset).get("annotations") or {}).get(DEADLINE))
    if last is None or (jobset.get("spec") or {}).get("suspend"):
        return None
    return last + _disruptions(jobset) * _attempt(jobset) + _queued(jobset)


def _disruptions(jobset: Object) -> int:
    status = jobset.get("status") or {}
    return int(status.get("restarts") or 0) - int(status.get("restartsCountTowardsMax") or 0)


def _attempt(jobset: Object) -> timedelta:
    """The longest time of one attempt, with the end of its pods."""
    jobs = [
        (one.get("template") or {}).get("spec") or {} for one in (jobset.get("spec") or {}).get("replicatedJobs") or ()
    ]
    graces = [((job.get("template") or {}).get("spec") or {}).get("terminationGracePeriodSeconds") or 0 for job in jobs]
    return timedelta(
        seconds=max((job.get("activeDeadlineSeconds") or 0 for job in jobs), default=0) + max(graces, default=0)
    )


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
