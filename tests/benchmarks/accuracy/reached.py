"""When a curve reaches a target and stays there."""

from __future__ import annotations

from collections.abc import Sequence

from tests.benchmarks.section import Rows

Point = tuple[int, float, float]
"""Steps done, seconds, held-out pass@1."""


def reached(curve: Sequence[Point], target: float) -> float | None:
    """Seconds of the first measurement from which on all are at least ``target``; None if the last one is below."""
    found = None
    for _, seconds, value in reversed(curve):
        if value < target:
            break
        found = seconds
    return found


def figures(rows: Rows) -> dict[str, str]:
    return {}
