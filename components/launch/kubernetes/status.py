"""A run's status, from what was observed of it and what its stage left in the workspace."""

from __future__ import annotations

import re
from typing import NamedTuple

from components.errors import EXIT_BAD_INPUT, EXIT_LOST, EXIT_NO_CANDIDATE, EXIT_STOPPED
from components.launch.base import Job, JobStatus
from components.launch.kubernetes.diagnosis import diagnose
from components.launch.kubernetes.diagnosis.ending import MEANINGS, disrupted, termination_message
from components.launch.kubernetes.diagnosis.finding import sentence
from components.launch.kubernetes.names import QUEUE
from components.launch.kubernetes.observed import (
    Object,
    Observed,
    condition,
    containers,
    endings,
    labels,
    metadata,
    name_of,
    part,
    role_of,
)
from components.layout import Layout
from components.status import read_status
from components.words import plural

FIRST_FAILED = re.compile(r"first failed job: ([^)\s]+)")
NAMED = re.compile(r"Container (?P<container>\S+) for pod \S+/(?P<pod>\S+) failed with exit code (?P<code>\d+)")
ANSWERS = (EXIT_BAD_INPUT, EXIT_NO_CANDIDATE)
"""Codes that say something of the run itself: they are passed on, and nothing is started again."""
FAILED = 1
"""Of a run that failed for a reason that a person has to find."""


def status_of(observed: Observed) -> JobStatus:
    """The state of a run. ``exit_code`` is 0, 2 and 3 as the stage says; else 75 where the cluster took something
    away, so that the same submission may succeed, and 1 where it would hardly.
    """
    jobset = observed.jobset
    if jobset is None:
        what = (
            f"the JobSet {observed.name} is gone: somebody deleted it, or it ended and its ttl is over\n"
            "  fix:   submit the run again: it goes on from its newest checkpoint"
        )
        return JobStatus("failed", EXIT_LOST, what)
    ended = part(jobset, "status").get("terminalState")
    if condition(jobset, "Completed") or ended == "Completed":
        return JobStatus("succeeded", 0)
    failed = condition(jobset, "Failed")
    if failed is not None or ended == "Failed":
        return _failure(observed, failed or {})
    if metadata(jobset).get("deletionTimestamp"):
        return JobStatus("running", None, f"the JobSet {name_of(jobset)} is being deleted")
    if part(jobset, "spec").get("suspend"):
        return JobStatus("pending", None, _held(jobset))
    return _progress(observed)


def _held(jobset: Object) -> str:
    queue = labels(jobset).get(QUEUE)
    space = metadata(jobset).get("namespace", "")
    if queue:
        return f"waits for quota in the queue {queue} (kubectl -n {space} get workloads)"
    return (
        "is suspended by somebody; "
        f'kubectl -n {space} patch jobset {name_of(jobset)} --type merge -p \'{{"spec":{{"suspend":false}}}}\''
    )


def _progress(observed: Observed) -> JobStatus:
    works = any(_phase(pod) not in ("", "Pending") for pod in observed.leading())
    pods = observed.present(observed.pods)
    run = sum(_phase(pod) == "Running" for pod in pods)
    wanted = 0
    for one in part(observed.jobset, "spec").get("replicatedJobs") or ():
        wanted += int(one.get("replicas") or 1) * int(part(one, "template", "spec").get("parallelism") or 1)
    parts = [f"{run} of {wanted} pods run"]
    if observed.restarts:
        parts.append(f"attempt {observed.restarts + 1}{_restart_reason(observed)}")
    message = ", ".join(parts)
    if found := diagnose(observed):
        message += "\n" + "\n".join(map(str, found))
    return JobStatus("running" if works else "pending", None, message)


def _failure(observed: Observed, failed: Object) -> JobStatus:
    culprit = _first_failed(observed, failed)
    ended = _ended(observed, culprit)
    what = f"{role_of(culprit) or name_of(culprit)} failed" if culprit else "the run failed"
    if ended:
        meaning = f" ({MEANINGS[ended.code]})" if ended.code in MEANINGS else ""
        what = f"{ended.who} ended with exit code {ended.code}{meaning}" + (f": {ended.said}" if ended.said else "")
    elif reason := (culprit and condition(culprit, "Failed")) or failed:
        what += f": {sentence(reason.get('message') or reason.get('reason') or 'no reason is given')}"
    if failed.get("reason") == "ReachedMaxRestarts":
        what += f"; {_restarts(observed)}"
    said = f"{ended.who} ended " if ended else what
    found = diagnose(observed)
    own = [one.advice for one in found if one.what.startswith(said)]
    rest = [str(one) for one in found if not one.what.startswith(said)]
    return JobStatus("failed", _exit_code(observed, ended), "\n".join([what, *own[:1], *rest]))


def _restarts(observed: Observed) -> str:
    counted = int(part(observed.jobset, "status").get("restartsCountTowardsMax") or 0)
    if not counted:
        return "launch.kubernetes.max_restarts allows no restart"
    return f"it was restarted {plural(counted, 'time')}, as often as launch.kubernetes.max_restarts allows"


def _first_failed(observed: Observed, failed: Object) -> Object | None:
    """The job that decided the matter, as the JobSet names it; else whichever failed."""
    named = FIRST_FAILED.search(str(failed.get("message")))
    jobs = observed.present(observed.jobs)
    return next(
        (job for job in jobs if named and name_of(job) == named[1]),
        next((job for job in jobs if condition(job, "Failed")), None),
    )


class Ended(NamedTuple):
    """A container that ended with an error: exit code and termination message."""

    role: str
    pod: str
    container: str
    code: int
    said: str

    @property
    def who(self) -> str:
        return self.role if self.container == self.role else f"{self.container} of {self.role}"


def _ended(observed: Observed, job: Object | None) -> Ended | None:
    """How a job ended: by the container that it names, or else by whichever is to blame."""
    if job is None:
        return None
    role = role_of(job) or name_of(job)
    failed = [
        Ended(role, name_of(pod), name_of(container), int(one["exitCode"]), termination_message(one))
        for pod in observed.present(observed.pods)
        if role_of(pod) == role and not disrupted(pod)
        for container in containers(pod)
        for one in endings(container)[:1]
        if one.get("exitCode")
    ]
    if named := NAMED.search(str((condition(job, "Failed") or {}).get("message"))):
        gone = Ended(role, named["pod"], named["container"], int(named["code"]), "")  # with its pod, where none fits
        failed = [one for one in failed if (one.pod, one.container) == (gone.pod, gone.container)] or [gone]
    # One that lost the others, or was stopped on request, is not the cause.
    return min(failed, key=lambda one: one.code in (EXIT_LOST, EXIT_STOPPED), default=None)


def _exit_code(observed: Observed, ended: Ended | None) -> int:
    learner = next((job for job in observed.present(observed.jobs) if role_of(job) == "learner"), None)
    own = _ended(observed, learner)
    for one in (ended, own):
        if one is not None and one.code in ANSWERS:
            return one.code
    # A pod that is evicted for what it used itself has no such condition.
    taken = any(condition(pod, "DisruptionTarget") for pod in observed.present(observed.pods))
    lost = ended.code in (EXIT_LOST, EXIT_STOPPED) if ended else taken
    return EXIT_LOST if lost else FAILED


def _restart_reason(observed: Observed) -> str:
    """What the JobSet says of its latest restart."""
    said = [e for e in observed.events if str(e.get("reason")).startswith("RestartJobSet")]
    named = FIRST_FAILED.search(str(said[-1].get("message"))) if said else None
    if named is None:
        return ""
    free = "IgnoreMaxRestarts" in str(said[-1].get("reason"))
    return f", because {named[1]} " + ("was disrupted" if free else "failed")


def _phase(pod: Object) -> str:
    return str(part(pod, "status").get("phase") or "")


def final_status(job: Job, observed: Observed) -> JobStatus:
    """The status of a job. Where the JobSet was removed at the end of its TTL, only the stage's own status is left."""
    status = status_of(observed)
    said = read_status(Layout(job.workspace), job.stage) if status.state == "failed" else None
    if said is None:
        return status
    if observed.jobset is None and said.exit_code == 0:
        return JobStatus("succeeded", 0)
    believed = ANSWERS if observed.jobset is None else (status.exit_code,)
    return JobStatus("failed", said.exit_code, said.message) if said.exit_code in believed else status
