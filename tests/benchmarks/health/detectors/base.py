"""The seam between stored signals and whatever says that something is wrong."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from components.types import StepRecord

BAD: Mapping[str, int] = {
    "entropy": -1,
    "accuracy": -1,
    "dev_pass_at_1": -1,
    "kl_ref": 1,
    "grad_norm": 1,
    "length_mean": 1,
    "mismatch_mean": 1,
    "zero_variance_share": 1,
}
"""What the ways without rules watch, and in which direction it is bad."""
ALLOWED = 1.0
"""False alarms in 1,000 healthy steps that a detector is tuned to."""


class Alarm(NamedTuple):
    """Something is wrong in this step; ``acting`` when it is more than a warning."""

    step: int
    rule: str
    acting: bool


class Detector(ABC):
    """Reads the signals of a run in order; what it says of a step depends on nothing later."""

    @abstractmethod
    def alarms(self, records: Sequence[StepRecord]) -> list[Alarm]:
        """Every alarm, in order. An alarm that goes on is one alarm."""


def onsets(name: str, breaches: Iterable[tuple[int, bool]]) -> list[Alarm]:
    """An alarm at each first step of a stretch of breaches."""
    found, before = [], False
    for step, breached in breaches:
        if breached and not before:
            found.append(Alarm(step, name, acting=True))
        before = breached
    return found


def per_thousand(detector: Detector, runs: Sequence[Sequence[StepRecord]]) -> float:
    """Acting alarms in 1,000 steps of these runs."""
    count = sum(alarm.acting for records in runs for alarm in detector.alarms(records))
    return 1000 * count / max(1, sum(map(len, runs)))
