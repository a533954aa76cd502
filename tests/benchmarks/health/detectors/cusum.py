"""Cumulative sums (Page, Biometrika 1954) of signals that are standardised by the run's own beginning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev

from components.types import StepRecord
from tests.benchmarks.health.detectors.base import ALLOWED, BAD, Alarm, Detector, per_thousand

BASELINE = 10
"""Steps that say what is usual in a run."""
SLACK = 0.5
"""Standard deviations that a step may lie on the bad side without adding to the sum."""
GRID = [1.2**power for power in range(8, 50)]


class Cusum(Detector):
    """An alarm when the sum of what lies on the bad side exceeds ``limit``; the sum then starts afresh."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def alarms(self, records: Sequence[StepRecord]) -> list[Alarm]:
        return sorted(alarm for name, sign in BAD.items() for alarm in self._of(name, sign, records))

    def _of(self, name: str, sign: int, records: Sequence[StepRecord]) -> Iterator[Alarm]:
        points = [(r.step, r.signals[name]) for r in records if name in r.signals]
        usual = [value for step, value in points if step < BASELINE]
        if len(usual) < 2:
            return
        middle = fmean(usual)
        spread = max(stdev(usual), 0.02 * abs(middle), 1e-9)
        total = 0.0
        for step, value in points:
            if step < BASELINE:
                continue
            total = max(0.0, total + sign * (value - middle) / spread - SLACK)
            if total > self.limit:
                yield Alarm(step, name, acting=True)
                total = 0.0


def tuned(healthy: Sequence[Sequence[StepRecord]]) -> Cusum:
    """The smallest limit with at most `ALLOWED` false alarms in 1,000 steps of these runs."""
    for limit in GRID:
        detector = Cusum(limit)
        if per_thousand(detector, healthy) <= ALLOWED:
            break
    return detector
