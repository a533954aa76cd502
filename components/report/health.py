"""Verdicts of the monitor as a reader needs them, set against the rules that watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from components.config import Settings
from components.types import Verdict
from components.words import ABSENT, number

RECENT = 5
"""Values of each signal that the table shows; the verdict itself carries more."""


@dataclass(frozen=True)
class Watch:
    """One configured rule and how often it fired."""

    name: str
    when: str
    streak: int
    level: str
    why: str
    fired: int


def figures(verdict: Verdict) -> list[str]:
    """``entropy … 0.21, 0.15, 0.08``: the last values of every signal that the rule looked at."""
    lines = []
    for signal, window in verdict.evidence.items():
        values = ", ".join(ABSENT if value is None else number(value) for value in window[-RECENT:])
        lines.append(f"{signal}{' …' if len(window) > RECENT else ''} {values}")
    return lines


def watches(settings: Settings, verdicts: Sequence[Verdict]) -> list[Watch]:
    """Every configured rule with the number of times it fired, in the order of the configuration."""
    fired = [verdict.rule for verdict in verdicts]
    return [
        Watch(name, rule.when, rule.streak, rule.level, rule.why, fired.count(name))
        for name, rule in settings.health.rules.items()
    ]
