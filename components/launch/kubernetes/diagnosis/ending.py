"""Containers that ended, and jobs that took too long."""

from __future__ import annotations

from collections.abc import Iterator

from components.errors import EXIT_BAD_INPUT, EXIT_LOST, EXIT_NO_CANDIDATE, EXIT_STOPPED
from components.launch.kubernetes.diagnosis.disruption import disrupted
from components.launch.kubernetes.diagnosis.finding import Finding, each, pod_command, sentence, word
from components.launch.kubernetes.diagnosis.starting import NEVER_RAN
from components.launch.kubernetes.observed import Object, Observed, about, condition, containers, endings, name_of

KILLED = 137
"""Exit code after SIGKILL."""
MEANINGS = {
    EXIT_BAD_INPUT: "its input or its settings are wrong",
    EXIT_NO_CANDIDATE: "everything worked and the answer is no",
    EXIT_LOST: "it lost the others",
    EXIT_STOPPED: "it was stopped on request, with a checkpoint",
    126: "its command may not be run",
    127: "its command is not there",
    134: "it aborted",
    KILLED: "it was killed",
    139: "it crashed (segmentation fault)",
}
ENDED_WELL = {0, EXIT_NO_CANDIDATE, EXIT_LOST, EXIT_STOPPED}
"""Codes that are no fault of the container that ended with them."""


def killed(observed: Observed) -> Iterator[Finding]:
    """Out of memory: the container took more than its limit."""
    for section, pod in each(observed):
        for container in containers(pod):
            if any(one.get("reason") == "OOMKilled" for one in endings(container)):
                limit = _limit(pod, str(container.get("name")))
                what = f"{word(pod)} ran out of memory" + (f", its limit is {limit}" if limit else "")
                how = (
                    f"raise {section}.memory (shm counts towards it), or make the run smaller: fewer or shorter answers"
                )
                yield Finding(what, f"pod {name_of(pod)}", how)


def exits(observed: Observed) -> Iterator[Finding]:
    """Every other end with an error. Where a role's pods ended so again and again, it states how often."""
    failed: dict[tuple[str, int, str], list[tuple[str, Object]]] = {}
    silent = _unhealthy(observed)
    for section, pod in each(observed):
        if disrupted(pod) or name_of(pod) in silent:
            continue
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            for one in endings(container)[:1]:
                code = int(one.get("exitCode") or 0)
                if code not in ENDED_WELL and one.get("reason") not in ("OOMKilled", *NEVER_RAN):
                    failed.setdefault((word(pod), code, termination_message(one)), []).append((section, pod))
    for (role, code, said), pods in failed.items():
        section, pod = pods[0]
        often = f" {len(pods)} times" if len(pods) > 1 else ""
        meaning = MEANINGS.get(code)
        what = f"{role} ended{often} with exit code {code}" + (f" ({meaning})" if meaning else "")
        how = f"{pod_command(pod, 'logs')} -c {role}"
        if code == KILLED:
            how += f"; if it says nothing, its node lacked memory ({section}.memory), or its grace was over"
        for _, one in pods:
            yield Finding(what + (f": {said}" if said else ""), f"pod {name_of(one)}", how)


def termination_message(ended: Object) -> str:
    """What one of our containers has said of its end (`components.pods.ending`), or the end of its log."""
    if ended.get("reason") in NEVER_RAN:
        return ""  # the cluster's words, not its own
    lines = [line.strip() for line in str(ended.get("message") or "").splitlines() if line.strip()]
    return sentence(" | ".join(lines[-4:]))


def overdue(observed: Observed) -> Iterator[Finding]:
    """A job took longer than it may."""
    for job in observed.present(observed.jobs):
        failed = condition(job, "Failed")
        if failed is not None and failed.get("reason") == "DeadlineExceeded":
            seconds = (job.get("spec") or {}).get("activeDeadlineSeconds")
            what = f"{word(job)} took longer than it may" + (f" ({seconds} s)" if seconds else "")
            how = "raise launch.kubernetes.deadline, then submit the run again: it goes on from its newest checkpoint"
            yield Finding(what, f"job {name_of(job)}", how)


def probes(observed: Observed) -> Iterator[Finding]:
    """A server that answers no more, or did not begin to in time. While one loads its model, silence is no fault."""
    latest = _unhealthy(observed)
    for section, pod in each(observed):
        if name_of(pod) not in latest or condition(pod, "Ready") is not None:
            continue
        message = sentence(latest[name_of(pod)].get("message"))
        if not message.startswith("Startup"):
            how = f"{pod_command(pod, 'logs')} -c {word(pod)}"
            yield Finding(f"{word(pod)} does not answer: {message}", f"pod {name_of(pod)}", how)
        elif (pod.get("status") or {}).get("phase") == "Failed":
            how = f"raise rollout.engine.start_timeout, or give it more ({section}.cpu, {section}.memory)"
            yield Finding(f"{word(pod)} did not answer in time: {message}", f"pod {name_of(pod)}", how)


def _unhealthy(observed: Observed) -> dict[str, Object]:
    """The latest report of each pod whose probe failed."""
    return {about(event): event for event in observed.events if event.get("reason") == "Unhealthy"}


def _limit(pod: Object, name: str) -> str:
    spec = pod.get("spec") or {}
    every: list[Object] = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    limits = [(one.get("resources") or {}).get("limits") or {} for one in every if one.get("name") == name]
    return str(limits[0].get("memory") or "") if limits else ""
