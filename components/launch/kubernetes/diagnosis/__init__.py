"""Why a run does not run: the usual deaths of pods, found in what was observed, each with what to do.

- `finding` — `Finding`, and how those of many pods become one
- `placing` — quota, policies, a JobSet that nothing acts on: pods that were never made; no node for a pod
- `starting` — images, Secrets, volumes, init containers, commands: a container that cannot begin
- `ending` — evicted, preempted, drained, a node that is lost; out of memory, exit codes, deadlines, probes

All are pure functions of an `Observed`.
"""

from collections.abc import Callable, Iterator

from components.launch.kubernetes.diagnosis import ending, placing, starting
from components.launch.kubernetes.diagnosis.finding import Finding, merged
from components.launch.kubernetes.observed import Observed

CAUSES: dict[str, Callable[[Observed], Iterator[Finding]]] = {
    "ignored": placing.ignored,
    "refused": placing.refused,
    "unschedulable": placing.unschedulable,
    "image": starting.images,
    "configuration": starting.configuration,
    "volume": starting.volumes,
    "init": starting.initialisation,
    "out of memory": ending.killed,
    "taken": ending.taken,
    "node lost": ending.lost,
    "deadline": ending.overdue,
    "probe": ending.probes,
    "exit": ending.exits,
}
"""The first ones explain the later ones, rather than the other way round."""


def diagnose(observed: Observed) -> list[Finding]:
    """What is wrong, each thing once however many pods have it."""
    return merged(finding for cause in CAUSES.values() for finding in cause(observed))


__all__ = ["CAUSES", "Finding", "diagnose"]
