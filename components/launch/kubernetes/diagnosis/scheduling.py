"""No node for a pod. The scheduler says of how many nodes each reason is true."""

from __future__ import annotations

import re
from collections.abc import Iterator

from components.launch.kubernetes.diagnosis.finding import Finding, each, namespace, sentence, word
from components.launch.kubernetes.observed import Observed, condition, name_of

ASIDE = r"[., ]*(preemption:|no new claims to deallocate)"
"""After it comes why preemption does not help either."""
HINTS: tuple[tuple[str, str], ...] = (
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


def unschedulable(observed: Observed) -> Iterator[Finding]:
    for section, pod in each(observed):
        found = condition(pod, "PodScheduled", "False")
        if found is None or found.get("reason") == "SchedulingGated":
            continue
        message = sentence(re.split(ASIDE, str(found.get("message") or "no reason is given"))[0])
        hints = [hint for pattern, hint in HINTS if re.search(pattern, message)]
        how = "; ".join(hints[:3]) or "kubectl get nodes: is there any that is ready?"
        yield Finding(
            f"no node takes the {word(pod)} pod: {message}",
            f"pod {name_of(pod)}",
            how.format(section=section, space=namespace(pod)),
        )
