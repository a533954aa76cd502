"""Pods that were never made: the cluster's rules refuse them, or nothing makes them; and pods that no node takes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from components.launch.kubernetes.diagnosis.finding import Finding, Hints, each, hint, latest, namespace, sentence, word
from components.launch.kubernetes.observed import Object, Observed, condition, name_of, part

REFUSED = ("FailedCreate", "JobCreationFailed", "HeadlessServiceCreationFailed")
REFUSAL_HINTS: Hints = (
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
ASIDE = r"[., ]*(preemption:|no new claims to deallocate)"
"""After it comes why preemption does not help either."""
SCHEDULER_HINTS: Hints = (
    (
        r"Insufficient nvidia\.com/gpu",
        "wait for room, request fewer GPUs a pod ({section}.gpus), or add nodes with more",
    ),
    (r"Insufficient memory", "wait for room, request less memory ({section}.memory), or add larger nodes"),
    (r"Insufficient cpu", "wait for room, request fewer cores ({section}.cpu), or add larger nodes"),
    (r"Insufficient ephemeral-storage", "wait for room, request less disk ({section}.disk), or add nodes with more"),
    (r"untolerated taint", "name the taint in {section}.tolerations, if these pods may be put there"),
    (r"node affinity/selector", "correct {section}.node_selector: kubectl get nodes --show-labels"),
    (r"pod (anti-)?affinity", "correct {section}.topology, or make room where the other pods of the role are"),
    (r"(?i)persistentvolumeclaim", "kubectl -n {space} describe pvc: see launch.kubernetes.shared.claim"),
    (r"volume node affinity", "the claim's volume is not to be had where there is room: use one of all zones"),
    (r"Too many pods", "add nodes: these take no more pods"),
    (r"were unschedulable", "kubectl get nodes: cordoned nodes take no pods (kubectl uncordon NODE)"),
)


def refused(observed: Observed) -> Iterator[Finding]:
    """What was last refused to every job that lacks pods, and to the JobSet where it lacks jobs."""
    owners = {name_of(job): job for job in observed.present(observed.jobs) if _lacks_pods(job)}
    if observed.jobset is not None and not observed.jobs:
        owners[name_of(observed.jobset)] = observed.jobset
    for name, said in latest(observed, *REFUSED).items():
        if (job := owners.get(name)) is None:
            continue
        # Every pod that is refused has a name of its own, and no other difference.
        message = re.sub(r'pods "[^"]+" is forbidden', "pods are forbidden", said)
        if "exceeded quota" in message:
            what = f"the namespace's quota has no room for {word(job)}: {message}"
            look = f"kubectl -n {namespace(job)} describe resourcequota"
            how = f"{look}: wait, request less (launch.kubernetes), or have it raised"
        else:
            what = f"the cluster refuses the pods of {word(job)}: {message}"
            policies = "ask the administrators of the cluster: the message above is from its policies"
            how = hint(REFUSAL_HINTS, message, policies, section=f"launch.kubernetes.{word(job)}")
        yield Finding(what, f"job {name}", how)


def _lacks_pods(job: Object) -> bool:
    status, spec = part(job, "status"), part(job, "spec")
    if condition(job, "Complete") or condition(job, "Failed") or spec.get("suspend"):
        return False
    there = sum(int(status.get(state) or 0) for state in ("active", "succeeded", "terminating"))
    return there < int(spec.get("parallelism") or 1)


def ignored(observed: Observed) -> Iterator[Finding]:
    """Nothing has made jobs of the JobSet: it has no status, so its controller has not seen it."""
    jobset = observed.jobset
    if jobset is None or observed.jobs or jobset.get("status") or part(jobset, "spec").get("suspend"):
        return
    if any(event.get("reason") in REFUSED for event in observed.events):
        return
    how = "if this lasts, its controller does not run: kubectl -n jobset-system get pods"
    yield Finding("nothing has begun to work on the JobSet yet", f"JobSet {name_of(jobset)}", how)


def unschedulable(observed: Observed) -> Iterator[Finding]:
    for section, pod in each(observed):
        found = condition(pod, "PodScheduled", "False")
        if found is None or found.get("reason") == "SchedulingGated":
            continue
        message = sentence(re.split(ASIDE, str(found.get("message") or "no reason is given"))[0])
        hints = [advice for pattern, advice in SCHEDULER_HINTS if re.search(pattern, message)]
        how = "; ".join(hints[:3]) or "kubectl get nodes: is there any that is ready?"
        how = how.format(section=section, space=namespace(pod))
        yield Finding(f"no node takes the {word(pod)} pod: {message}", f"pod {name_of(pod)}", how)
