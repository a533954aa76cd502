"""Values that no healthy log has, whether or not a rule reads them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from components.health.signals import find_signal
from components.types import StepRecord

ROUNDING = 1e-3
"""How far beyond its bounds a value may be without a remark; logs are rounded, and estimates are noisy."""


def doubts(records: Iterable[StepRecord]) -> Iterator[str]:
    """One remark a signal: values that are not finite, and those that its range excludes, most likely another unit."""
    broken: dict[str, list[int]] = {}
    excluded: dict[str, list[tuple[int, float]]] = {}
    for record in records:
        for name, value in record.signals.items():
            if not math.isfinite(value):
                broken.setdefault(name, []).append(record.step)
            elif (known := find_signal(name)) and not known.low - ROUNDING <= value <= known.high + ROUNDING:
                excluded.setdefault(name, []).append((record.step, value))
    for name, steps in broken.items():
        yield f"{name} is NaN or infinite, first in step {steps[0]}, in {len(steps)} in all"
    for name, values in excluded.items():
        step, value = values[0]
        yield f"{name} cannot be {value:.4g}, as in step {step} and {len(values)} in all; check the unit in the mapping"
