"""Fixed limits, one a signal, as far from the healthy mean as false alarms make necessary."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from components.types import StepRecord
from tests.benchmarks.health.detectors.base import ALLOWED, BAD, Alarm, Detector, onsets, per_thousand

GRID = [step / 4 for step in range(4, 121)]
"""Distances that are tried, in standard deviations."""


class Thresholds(Detector):
    """An alarm when a signal passes its limit."""

    def __init__(self, limits: dict[str, float]) -> None:
        self.limits = limits

    def alarms(self, records: Sequence[StepRecord]) -> list[Alarm]:
        found = []
        for name, limit in self.limits.items():
            sign = BAD[name]
            seen = ((r.step, sign * r.signals[name] > sign * limit) for r in records if name in r.signals)
            found += onsets(name, seen)
        return sorted(found)


def tuned(healthy: Sequence[Sequence[StepRecord]]) -> Thresholds:
    """The nearest limits with at most `ALLOWED` false alarms in 1,000 steps of these runs."""
    columns = {name: [r.signals[name] for run in healthy for r in run if name in r.signals] for name in BAD}
    scales = {name: (fmean(values), stdev(values)) for name, values in columns.items() if len(values) > 1}
    for distance in GRID:
        detector = Thresholds({n: mean + BAD[n] * distance * spread for n, (mean, spread) in scales.items()})
        if per_thousand(detector, healthy) <= ALLOWED:
            break
    return detector
