"""Pods that were taken away, through no fault of their own. The run goes on from its last checkpoint by itself."""

from __future__ import annotations

from collections.abc import Iterator

from components.launch.kubernetes.diagnosis.finding import Finding, each, sentence, word
from components.launch.kubernetes.observed import Object, Observed, condition, name_of

AGAIN = "nothing has to be done: the run goes on from its last checkpoint"
LOST_NODE = {"DeletionByTaintManager", "DeletionByPodGC"}


def disrupted(pod: Object) -> str:
    """Why a pod was taken away, as the cluster calls it; empty where it was not."""
    found = condition(pod, "DisruptionTarget")
    reason = str((found or {}).get("reason") or "")
    status = pod.get("status") or {}
    own = str(status.get("reason") or "")
    return reason or (own if own in ("Evicted", "NodeLost", "Preempting", "NodeShutdown", "Terminated") else "")


def evicted(observed: Observed) -> Iterator[Finding]:
    """By the node itself: it, or the pod, used more than there is."""
    for section, pod in each(observed):
        if disrupted(pod) not in ("TerminationByKubelet", "Evicted", "NodeShutdown", "Terminated"):
            continue
        message = sentence((pod.get("status") or {}).get("message"))
        how = AGAIN
        if "ephemeral" in message or "EmptyDir" in message or "disk" in message:
            how = f"raise {section}.disk (of /tmp, logs and fetched files), or write less"
            how = f"raise {section}.shm" if '"shm"' in message else how
        elif "memory" in message:
            how = (
                f"raise {section}.memory to what it really uses: a pod that uses more than its request is evicted first"
            )
        yield Finding(f"{word(pod)} was evicted: {message}", f"pod {name_of(pod)}", how)


def preempted(observed: Observed) -> Iterator[Finding]:
    """For a pod of higher priority."""
    for section, pod in each(observed):
        if disrupted(pod) in ("PreemptionByScheduler", "Preempting"):
            message = sentence((condition(pod, "DisruptionTarget") or {}).get("message"))
            how = f"{AGAIN}; if it happens often, set {section}.priority_class"
            yield Finding(f"{word(pod)} had to make room: {message}", f"pod {name_of(pod)}", how)


def drained(observed: Observed) -> Iterator[Finding]:
    """By a request for the pod's eviction, such as from kubectl drain or an autoscaler."""
    for _, pod in each(observed):
        if disrupted(pod) == "EvictionByEvictionAPI":
            message = sentence((condition(pod, "DisruptionTarget") or {}).get("message"))
            yield Finding(f"{word(pod)} was moved away: {message}", f"pod {name_of(pod)}", AGAIN)


def lost(observed: Observed) -> Iterator[Finding]:
    """Its node does not answer. It is unknown whether it still runs, so nothing takes its place."""
    for _, pod in each(observed):
        node = (pod.get("spec") or {}).get("nodeName") or "unknown"
        status = pod.get("status") or {}
        ended = status.get("phase") in ("Failed", "Succeeded")
        if disrupted(pod) not in (*LOST_NODE, "NodeLost") and status.get("phase") != "Unknown":
            continue
        how = AGAIN
        if not ended:
            how = f"kubectl get node {node}: if it is gone for good, kubectl delete node {node}, and the run goes on"
        yield Finding(f"the node {node} of {word(pod)} is lost", f"pod {name_of(pod)}", how)
