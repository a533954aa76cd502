"""Pods that were never made: the cluster's rules refuse them, or nothing makes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from components.launch.kubernetes.diagnosis.finding import Finding, namespace, sentence, word
from components.launch.kubernetes.observed import Object, Observed, about, condition, name_of

REFUSED = {"FailedCreate", "JobCreationFailed", "HeadlessServiceCreationFailed"}
HINTS: tuple[tuple[str, str], ...] = (
    (r"violates PodSecurity", "these pods satisfy `restricted`: the namespace is stricter, or something changes them"),
    (
        r"serviceaccounts? .*not found",
        "correct launch.kubernetes.service_account, or create it: kubectl apply -k k8s/overlays/cpu",
    ),
    (r"no PriorityClass", "kubectl get priorityclasses: correct {section}.priority_class"),
    (r"RuntimeClass", "kubectl get runtimeclasses: correct {section}.runtime_class"),
    (
        r"LimitRange|maximum .* usage per|minimum .* usage per",
        "stay within the LimitRange of the namespace ({section})",
    ),
)


def quota(observed: Observed) -> Iterator[Finding]:
    for job, message in _refusals(observed):
        if "exceeded quota" in message:
            look = f"kubectl -n {namespace(job)} describe resourcequota"
            how = f"{look}: wait, request less (launch.kubernetes), or have it raised"
            yield Finding(f"the namespace's quota has no room for {word(job)}: {message}", f"job {name_of(job)}", how)


def denied(observed: Observed) -> Iterator[Finding]:
    for job, message in _refusals(observed):
        if "exceeded quota" in message:
            continue
        section = f"launch.kubernetes.{word(job)}"
        hints = [hint for pattern, hint in HINTS if re.search(pattern, message)]
        how = (hints or ["ask the administrators of the cluster: the message above is from its policies"])[0].format(
            section=section
        )
        yield Finding(f"the cluster refuses the pods of {word(job)}: {message}", f"job {name_of(job)}", how)


def _refusals(observed: Observed) -> Iterator[tuple[Object, str]]:
    """The latest refusal for every job that lacks pods, and for the JobSet where it lacks jobs."""
    owners = {name_of(job): job for job in observed.present(observed.jobs) if _lacks_pods(job)}
    if observed.jobset is not None and not observed.jobs:
        owners[name_of(observed.jobset)] = observed.jobset
    latest = {}
    for event in observed.events:
        if event.get("reason") in REFUSED and about(event) in owners:
            latest[about(event)] = _without_names(sentence(event.get("message")))
    yield from ((owners[name], message) for name, message in latest.items())


def _without_names(message: str) -> str:
    """Every pod that is refused has a name of its own, and no other difference."""
    return re.sub(r'pods "[^"]+" is forbidden', "pods are forbidden", message)


def _lacks_pods(job: Object) -> bool:
    status, spec = job.get("status") or {}, job.get("spec") or {}
    if condition(job, "Complete") or condition(job, "Failed") or spec.get("suspend"):
        return False
    there = sum(int(status.get(part) or 0) for part in ("active", "succeeded", "terminating"))
    return there < int(spec.get("parallelism") or 1)


def ignored(observed: Observed) -> Iterator[Finding]:
    """Nothing has made jobs of the JobSet: it has no status, so its controller has not seen it."""
    jobset = observed.jobset
    if jobset is None or observed.jobs or jobset.get("status") or (jobset.get("spec") or {}).get("suspend"):
        return
    if any(event.get("reason") in REFUSED for event in observed.events):
        return
    how = "if this lasts, its controller does not run: kubectl -n jobset-system get pods"
    yield Finding("nothing has begun to work on the JobSet yet", f"JobSet {name_of(jobset)}", how)
