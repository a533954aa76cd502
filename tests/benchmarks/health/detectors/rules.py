"""A file of rules, replayed by the code that runs live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.config.judgement import RuleSettings
from components.health import replay
from components.types import StepRecord
from tests.benchmarks.health.detectors.base import Alarm, Detector


class Rules(Detector):
    """What a monitor with these rules says; every level above a warning acts."""

    def __init__(self, rules: Mapping[str, RuleSettings]) -> None:
        self._rules = rules

    def alarms(self, records: Sequence[StepRecord]) -> list[Alarm]:
        return [Alarm(v.step, v.rule, v.level not in ("pass", "warn")) for v in replay(self._rules, records)]


PLAIN_STREAK = 51
"""The seed rule says: for more than 50 steps."""
PLAIN = Rules(
    {
        "entropy": RuleSettings(
            when="entropy < 0.5", streak=PLAIN_STREAK, level="stop", why="entropy is low", source="seed rule"
        )
    }
)
"""Entropy below half a nat for that long, and nothing else."""
