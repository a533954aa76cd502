"""A run of another trainer, judged step after step; what has been said is not said again while it goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from components.config.judgement import RuleSettings
from components.health.monitor import Monitor
from components.types import StepRecord, Verdict

REST = 50
"""Logged steps in a row in which a rule has not held, after which it may fire again."""


class OtherRun:
    """A monitor whose rules fire once: a condition that comes and goes is one verdict. Rules that have ``fired``
    before the first step have their rest to come.

    Raises:
        InputError: a rule is malformed.
    """

    def __init__(self, rules: Mapping[str, RuleSettings], fired: Iterable[str] = ()) -> None:
        self._monitor = Monitor(rules)
        self._seen = 0
        self._held = dict.fromkeys(fired, 0)  # by rule that has fired: the last step, counted, on which it held

    def observe(self, record: StepRecord) -> list[Verdict]:
        """Take one step in and return what is new.

        Raises:
            ValueError: the record is not later than the one before.
        """
        verdicts = self._monitor.observe(record)
        self._seen += 1
        new = [one for one in verdicts if self._seen - self._held.get(one.rule, -REST) > REST]
        fired = self._held.keys() | {one.rule for one in verdicts}
        self._held |= {rule: self._seen for rule, length in self._monitor.metrics().items() if length and rule in fired}
        return new


def judge_other(rules: Mapping[str, RuleSettings], records: Iterable[StepRecord]) -> list[Verdict]:
    """Every verdict on the records of another trainer's run."""
    run = OtherRun(rules)
    return [verdict for record in records for verdict in run.observe(record)]
