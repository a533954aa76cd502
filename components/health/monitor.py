"""Applies the rules to one step after the other, live or from a saved log."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from components.config.judgement import RuleSettings
from components.health.rules import Reading, Rule, compile_rule
from components.health.windows import window
from components.types import Level, StepRecord, Verdict

EVIDENCE = 20
"""Values of each signal that a verdict carries at the most."""

LEVELS: tuple[Level, ...] = get_args(Level)
"""From harmless to grave."""


class Monitor:
    """Watches a run.

    A rule breaches in a step when its condition holds, or when a signal it reads is not finite in that step. A step
    in which something it reads does not exist counts neither way. When the breaches of consecutive steps reach the
    rule's streak the rule speaks once; it can speak again after a step on which it did not hold.

    Raises:
        InputError: a rule is malformed; all rules are checked before the first step.
    """

    def __init__(self, rules: Mapping[str, RuleSettings]) -> None:
        self._rules = [compile_rule(name, settings) for name, settings in rules.items()]
        self._steps: list[int] = []
        self._series: dict[str, list[tuple[int, float | None]]] = {
            signal: [] for signal in sorted({signal for rule in self._rules for signal in rule.signals})
        }
        self._streaks = {rule.name: 0 for rule in self._rules}

    def observe(self, record: StepRecord) -> list[Verdict]:
        """Take one step in and return what the rules newly say about it.

        Raises:
            ValueError: the record is not later than the one before.
        """
        if self._steps and record.step <= self._steps[-1]:
            raise ValueError(f"step {record.step} observed after step {self._steps[-1]}")
        self._steps.append(record.step)
        for signal, series in self._series.items():
            if signal in record.signals:
                value = record.signals[signal]
                series.append((record.step, value if math.isfinite(value) else None))
        return [verdict for rule in self._rules if (verdict := self._judge(rule)) is not None]

    def _judge(self, rule: Rule) -> Verdict | None:
        breached = self._breached(rule)
        if breached is None:
            return None
        self._streaks[rule.name] = self._streaks[rule.name] + 1 if breached else 0
        if self._streaks[rule.name] != rule.settings.streak:
            return None
        evidence = {signal: [value for _, value in self._series[signal][-EVIDENCE:]] for signal in rule.signals}
        return Verdict(rule.name, rule.settings.level, self._steps[-1], _reason(rule), evidence)

    def _breached(self, rule: Rule) -> bool | None:
        step = self._steps[-1]
        if any(self._series[signal][-1:] == [(step, None)] for signal in rule.signals):
            return True
        values = {name: self._value(reading) for name, reading in rule.readings.items()}
        known = {name: value for name, value in values.items() if value is not None}
        return rule.holds(step, known) if len(known) == len(values) else None

    def _value(self, reading: Reading) -> float | None:
        series = self._series[reading.signal]
        if reading.function is not None:
            return window(reading.function, reading.count, self._steps, series)
        return series[-1][1] if series and series[-1][0] == self._steps[-1] else None

    def metrics(self) -> dict[str, float]:
        """Steps for which each rule has held, up to now; 0 is healthy."""
        return {name: float(streak) for name, streak in self._streaks.items()}

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs, as JSON values."""
        series = {signal: [list(point) for point in points] for signal, points in self._series.items()}
        return {"steps": list(self._steps), "series": series, "streaks": dict(self._streaks)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`.

        Raises:
            ValueError: a field, a signal or a rule is missing or unknown: the state is of other rules.
        """
        own = self.state_dict()
        for found, expected in ((state, own), *((state.get(key, {}), own[key]) for key in ("series", "streaks"))):
            if set(found) != set(expected):
                raise ValueError(f"monitor state has {sorted(found)}, expected {sorted(expected)}")
        self._steps = [int(step) for step in state["steps"]]
        self._series = {signal: [(int(step), v) for step, v in state["series"][signal]] for signal in self._series}
        self._streaks = {name: int(state["streaks"][name]) for name in self._streaks}


def _reason(rule: Rule) -> str:
    """Why in words, with the condition and how long it held."""
    s = rule.settings
    return f"{s.why} [{s.when}{f', {s.streak} steps in a row' if s.streak > 1 else ''}]"


def check_rules(rules: Mapping[str, RuleSettings]) -> None:
    """Raise an `InputError` for the first malformed rule, before anything runs."""
    Monitor(rules)


def replay(rules: Mapping[str, RuleSettings], records: Iterable[StepRecord]) -> list[Verdict]:
    """Every verdict that a live monitor with these rules would have given on these records."""
    monitor = Monitor(rules)
    return [verdict for record in records for verdict in monitor.observe(record)]


def worst(verdicts: Iterable[Verdict]) -> Level:
    """The gravest level among the verdicts; ``pass`` when there is none."""
    return max((verdict.level for verdict in verdicts), key=LEVELS.index, default="pass")
