"""How a run is, from what was observed of it, and nothing else."""

from __future__ import annotations

import re
from typing import Any

from components.errors import EXIT_BAD_INPUT, EXIT_LOST, EXIT_NO_CANDIDATE, EXIT_STOPPED
from components.launch.base import JobStatus
from components.launch.kubernetes.diagnosis import Finding, diagnose
from components.launch.kubernetes.diagnosis.disruption import disrupted
from components.launch.kubernetes.diagnosis.ending import MEANINGS, last_words
from components.launch.kubernetes.observed import (
    Object,
    Observed,
    condition,
    endings,
    labels,
    name_of,
    role_of,
)

QUEUE = "kueue.x-k8s.io/queue-name"
FIRST_FAILED = re.compile(r"first failed job: ([^)\s]+)")
EXIT_CODE = re.compile(r"failed with exit code (\d+)")
ANSWERS = (EXIT_BAD_INPUT, EXIT_NO_CANDIDATE)
"""Codes that say something of the run itself, and are passed on."""
FAILED = 1
"""Of a run that failed for a reason that a person has to find."""


def status_of(observed: Observed) -> JobStatus:
    """The state of a run. ``exit_code`` is 0, 2 and 3 as the driver says; else 75 where the cluster took something
    away, so that the same submission may succeed, and 1 where it would hardly.
    """
    jobset = observed.jobset
    if jobset is None:
        what = f"the JobSet {observed.name} is gone: somebody deleted it, or it ended and its ttl is over"
        return JobStatus("failed", EXIT_LOST, what)
    ended = (jobset.get("status") or {}).get("terminalState")
    if condition(jobset, "Completed") or ended == "Completed":
        return JobStatus("succeeded", 0)
    failed = condition(jobset, "Failed")
    if failed is not None or ended == "Failed":
        return _failure(observed, failed or {})
    if jobset["metadata"].get("deletionTimestamp"):
        return JobStatus("running", None, f"the JobSet {name_of(jobset)} is being deleted")
    if (jobset.get("spec") or {}).get("suspend"):
        return JobStatus("pending", None, _held(jobset))
    return _progress(observed)


def _held(jobset: Object) -> str:
    queue = labels(jobset).get(QUEUE)
    space = jobset["metadata"].get("namespace", "")
    if queue:
        return f"waits for quota in the queue {queue} (kubectl -n {space} get workloads)"
    return (
        "is suspended by somebody; "
        f'kubectl -n {space} patch jobset {name_of(jobset)} --type merge -p \'{{"spec":{{"suspend":false}}}}\''
    )


def _progress(observed: Observed) -> JobStatus:
    drivers = observed.pods_of("driver")
    works = any(_phase(pod) not in ("", "Pending") for pod in drivers)
    pods = observed.present(observed.pods)
    run = sum(_phase(pod) == "Running" for pod in pods)
    wanted = sum(_replicas(one) for one in (observed.jobset or {}).get("spec", {}).get("replicatedJobs") or ())
    parts = [f"{run} of {wanted} pods run"]
    if observed.restarts:
        parts.append(f"attempt {observed.restarts + 1}{_why_again(observed)}")
    message = ", ".join(parts)
    if found := diagnose(observed):
        message += "\n" + "\n".join(map(str, found))
    return JobStatus("running" if works else "pending", None, message)


def _failure(observed: Observed, failed: Object) -> JobStatus:
    culprit = _first_failed(observed, failed)
    ended = _ended(observed, culprit)
    code, said = ended or (None, "")
    name = role_of(culprit) if culprit else None
    what = f"{name or 'the run'} failed"
    if code is not None:
        meaning = f" ({MEANINGS[code]})" if code in MEANINGS else ""
        what = f"{name} ended with exit code {code}{meaning}" + (f": {said}" if said else "")
    elif culprit and (reason := condition(culprit, "Failed")):
        what += f": {reason.get('message') or reason.get('reason')}"
    if failed.get("reason") == "ReachedMaxRestarts":
        what += f"; it was started {observed.restarts + 1} times, as often as launch.kubernetes.max_restarts allows"
    found = [one for one in diagnose(observed) if not (code is not None and one.what.startswith(f"{name} ended"))]
    lines = [what, *map(str, found)]
    return JobStatus("failed", _exit_code(observed, culprit, code, found), "\n".join(lines))


def _first_failed(observed: Observed, failed: Object) -> Object | None:
    """The job that decided the matter, as the JobSet names it; else whichever failed."""
    named = FIRST_FAILED.search(str(failed.get("message")))
    jobs = observed.present(observed.jobs)
    return next(
        (job for job in jobs if named and name_of(job) == named[1]),
        next((job for job in jobs if condition(job, "Failed")), None),
    )


def _ended(observed: Observed, job: Object | None) -> tuple[int, str] | None:
    """How a job's container ended: exit code and last words; of several the one that its job names."""
    if job is None:
        return None
    role = role_of(job)
    message = str((condition(job, "Failed") or {}).get("message"))
    named = EXIT_CODE.search(message)
    found: list[tuple[bool, int, str]] = []
    for pod in observed.present(observed.pods):
        if role_of(pod) != role or disrupted(pod):
            continue
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            for one in endings(container)[:1]:
                if code := int(one.get("exitCode") or 0):
                    found.append((f"/{name_of(pod)} " in message, code, last_words(one)))
    if named and not any(code == int(named[1]) for _, code, _ in found):
        return int(named[1]), ""  # its pod is gone already
    matching = [one for one in found if not named or one[1] == int(named[1])]
    if not matching:
        return None
    _, code, said = max(matching, key=lambda one: (one[0], one[1] not in (EXIT_LOST, EXIT_STOPPED)))
    return code, said


def _exit_code(observed: Observed, culprit: Object | None, code: int | None, found: list[Finding]) -> int:
    driver = next((job for job in observed.present(observed.jobs) if role_of(job) == "driver"), None)
    own = _ended(observed, driver)
    for one in (code, own[0] if own else None):
        if one in ANSWERS:
            return int(one)
    taken = any(disrupted(pod) for pod in observed.present(observed.pods))
    return EXIT_LOST if code in (EXIT_LOST, EXIT_STOPPED) or (code is None and taken) else FAILED


def _why_again(observed: Observed) -> str:
    """What the JobSet says of its latest restart."""
    said = [e for e in observed.events if str(e.get("reason")).startswith("RestartJobSet")]
    named = FIRST_FAILED.search(str(said[-1].get("message"))) if said else None
    if named is None:
        return ""
    free = "IgnoreMaxRestarts" in str(said[-1].get("reason"))
    return f", because {named[1]} " + ("was disrupted" if free else "failed")


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _replicas(replicated: dict[str, Any]) -> int:
    spec = (replicated.get("template") or {}).get("spec") or {}
    return int(replicated.get("replicas") or 1) * int(spec.get("parallelism") or 1)
