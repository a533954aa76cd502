"""Pods that were taken away, containers that ended, and jobs that took too long."""

from __future__ import annotations

from collections.abc import Iterator

from components.errors import EXIT_BAD_INPUT, EXIT_LOST, EXIT_NO_CANDIDATE, EXIT_STOPPED
from components.launch.kubernetes.diagnosis.finding import (
    Finding,
    Hints,
    each,
    hint,
    latest,
    logs_command,
    sentence,
    word,
)
from components.launch.kubernetes.diagnosis.starting import NEVER_RAN
from components.launch.kubernetes.observed import Object, Observed, condition, containers, endings, name_of, part

AGAIN = "nothing has to be done: the run goes on from its last checkpoint"
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
REASONS = ("Evicted", "NodeLost", "Preempting", "NodeShutdown", "Terminated")
"""Of a pod's own status, where it was taken away."""
EVICTED, PREEMPTED, DRAINED = "was evicted", "had to make room", "was moved away"
TAKEN = {
    **dict.fromkeys(("TerminationByKubelet", "Evicted", "NodeShutdown", "Terminated"), EVICTED),
    **dict.fromkeys(("PreemptionByScheduler", "Preempting"), PREEMPTED),
    "EvictionByEvictionAPI": DRAINED,
}
"""What the cluster did to a pod, by the reason that it gives."""
TAKEN_HINTS: dict[str, Hints] = {
    EVICTED: (
        (r'"shm"', "raise {section}.shm"),
        (r"ephemeral|EmptyDir|disk", "raise {section}.disk (of /tmp, logs and fetched files), or write less"),
        (
            r"memory",
            "raise {section}.memory to what it really uses: a pod that uses more than its request is evicted first",
        ),
    ),
    PREEMPTED: ((r"", f"{AGAIN}; if it happens often, set {{section}}.priority_class"),),
    DRAINED: (),
}
LOST_NODE = {"DeletionByTaintManager", "DeletionByPodGC", "NodeLost"}


def disrupted(pod: Object) -> str:
    """Why a pod was taken away, as the cluster calls it; empty where it was not."""
    found, own = condition(pod, "DisruptionTarget") or {}, str(part(pod, "status").get("reason") or "")
    return str(found.get("reason") or "") or (own if own in REASONS else "")


def taken(observed: Observed) -> Iterator[Finding]:
    """By its node, where it or the pod used more than there is; for a pod of higher priority; or by a request, such as
    from kubectl drain or an autoscaler."""
    for section, pod in each(observed):
        if (what := TAKEN.get(disrupted(pod))) is None:
            continue
        source = part(pod, "status") if what == EVICTED else condition(pod, "DisruptionTarget")
        message = sentence((source or {}).get("message"))
        how = hint(TAKEN_HINTS[what], message, AGAIN, section=section)
        yield Finding(f"{word(pod)} {what}: {message}", f"pod {name_of(pod)}", how)


def lost(observed: Observed) -> Iterator[Finding]:
    """Its node does not answer. It is unknown whether it still runs, so nothing takes its place."""
    for _, pod in each(observed):
        phase, node = part(pod, "status").get("phase"), part(pod, "spec").get("nodeName") or "unknown"
        if disrupted(pod) not in LOST_NODE and phase != "Unknown":
            continue
        gone = f"kubectl get node {node}: if it is gone for good, kubectl delete node {node}, and the run goes on"
        how = AGAIN if phase in ("Failed", "Succeeded") else gone
        yield Finding(f"the node {node} of {word(pod)} is lost", f"pod {name_of(pod)}", how)


def killed(observed: Observed) -> Iterator[Finding]:
    """Out of memory: the container took more than its limit."""
    for section, pod in each(observed):
        for container in containers(pod):
            if any(one.get("reason") == "OOMKilled" for one in endings(container)):
                limit = _limit(pod, name_of(container))
                what = f"{word(pod)} ran out of memory" + (f", its limit is {limit}" if limit else "")
                how = f"raise {section}.memory (shm counts towards it), or make the run smaller"
                yield Finding(what, f"pod {name_of(pod)}", f"{how}: fewer or shorter answers")


def _limit(pod: Object, name: str) -> str:
    spec = part(pod, "spec")
    every: list[Object] = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    limits = [part(one, "resources", "limits") for one in every if one.get("name") == name]
    return str(limits[0].get("memory") or "") if limits else ""


def exits(observed: Observed) -> Iterator[Finding]:
    """Every other end with an error. Where a role's pods ended so again and again, it states how often."""
    failed: dict[tuple[str, int, str], list[tuple[str, Object]]] = {}
    silent = latest(observed, "Unhealthy")
    for section, pod in each(observed):
        if disrupted(pod) or name_of(pod) in silent:
            continue
        for container in part(pod, "status").get("containerStatuses") or ():
            for one in endings(container)[:1]:
                code = int(one.get("exitCode") or 0)
                if code not in ENDED_WELL and one.get("reason") not in ("OOMKilled", *NEVER_RAN):
                    failed.setdefault((word(pod), code, termination_message(one)), []).append((section, pod))
    for (role, code, said), pods in failed.items():
        section, pod = pods[0]
        often = f" {len(pods)} times" if len(pods) > 1 else ""
        meaning = MEANINGS.get(code)
        what = f"{role} ended{often} with exit code {code}" + (f" ({meaning})" if meaning else "")
        how = logs_command(pod, role)
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
            seconds = part(job, "spec").get("activeDeadlineSeconds")
            what = f"{word(job)} took longer than it may" + (f" ({seconds} s)" if seconds else "")
            how = "raise launch.kubernetes.deadline, then submit the run again: it goes on from its newest checkpoint"
            yield Finding(what, f"job {name_of(job)}", how)


def probes(observed: Observed) -> Iterator[Finding]:
    """A server that answers no more, or did not begin to in time. While one loads its model, silence is no fault."""
    silent = latest(observed, "Unhealthy")
    for section, pod in each(observed):
        if name_of(pod) not in silent or condition(pod, "Ready") is not None:
            continue
        message = silent[name_of(pod)]
        if not message.startswith("Startup"):
            how = logs_command(pod, word(pod))
            yield Finding(f"{word(pod)} does not answer: {message}", f"pod {name_of(pod)}", how)
        elif part(pod, "status").get("phase") == "Failed":
            how = f"raise rollout.engine.start_timeout, or give it more ({section}.cpu, {section}.memory)"
            yield Finding(f"{word(pod)} did not answer in time: {message}", f"pod {name_of(pod)}", how)
