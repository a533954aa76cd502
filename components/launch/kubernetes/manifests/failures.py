"""What an end means: bad input fails the run, a disruption starts it again for nothing, the rest a few times.

A job only knows its own pods, so it fails at once and states why; the JobSet reads that and decides for all. See
`components.errors` for the codes.
"""

from __future__ import annotations

from typing import Any

from components.errors import EXIT_BAD_INPUT, EXIT_NO_CANDIDATE, EXIT_STOPPED

DISRUPTION = {"type": "DisruptionTarget", "status": "True"}
"""Condition of a pod that is evicted, preempted, or was on a node that went away."""


def linger(grace: int) -> int:
    """Seconds that whoever has lost another waits before it says so. A job has failed only when the last of its pods
    has ended, for which they have ``grace`` seconds; were the loss seen before, the disruption would count."""
    return grace + 30


def all_or_nothing() -> dict[str, Any]:
    """For jobs whose pods are nothing without one another: any failure is the job's. The first rule that fits counts,
    so a pod that is evicted is a disruption whatever code it ends with."""
    return {
        "rules": [
            {"action": "FailJob", "onPodConditions": [DISRUPTION]},
            _on_codes(EXIT_BAD_INPUT, EXIT_NO_CANDIDATE),
            _on_codes(EXIT_STOPPED),
        ]
    }


def one_by_one() -> dict[str, Any]:
    """For servers: one that is disrupted is replaced and not counted; the run goes on with the others meanwhile. One
    that refuses its arguments, or finds that its files are not there, would do so again."""
    return {"rules": [{"action": "Ignore", "onPodConditions": [DISRUPTION]}, _on_codes(EXIT_BAD_INPUT)]}


def jobset_policy(max_restarts: int) -> dict[str, Any]:
    """Rules of the JobSet, by what the Job controller writes on jobs that failed; what fits none is a restart that
    counts. The first rule that fits any of them decides: pods that are stopped because a time is over, or that
    stop because others were, end as disrupted ones do."""
    disrupted = rf"has condition DisruptionTarget matching|failed with exit code {EXIT_STOPPED} matching"
    return {
        "maxRestarts": max_restarts,
        "restartStrategy": "BlockingRecreate",  # no pod of an attempt before the last one of the attempt before is gone
        "rules": [
            {"name": "overdue", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]},
            {
                "name": "disrupted",
                "action": "RestartJobSetAndIgnoreMaxRestarts",
                "onJobFailureReasons": ["PodFailurePolicy"],
                "onJobFailureMessagePatterns": [disrupted],
            },
            {
                "name": "hopeless",
                "action": "FailJobSet",
                "onJobFailureReasons": ["PodFailurePolicy"],
            },
        ],
    }


def _on_codes(*codes: int) -> dict[str, Any]:
    return {"action": "FailJob", "onExitCodes": {"operator": "In", "values": sorted(codes)}}
