"""From alarms and truth to figures: detection, delay, false alarms, rescue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from components.config.judgement import RuleSettings
from components.evaluation.statistics import Proportion, wilson
from components.health.monitor import replay
from tests.benchmarks.health.store import Run
from tests.benchmarks.health.truth import Norm, hurt, rescued


class Alarm(NamedTuple):
    """A rule fired in this step; ``acting`` when it is more than a warning."""

    step: int
    rule: str
    acting: bool


Alarms = Mapping[str, Sequence[Alarm]]
"""Name of a run -> what the rules say of it."""


def alarms_of(rules: Mapping[str, RuleSettings], runs: Sequence[Run]) -> Alarms:
    """What a monitor with these rules says of stored runs; every level above a warning acts."""
    return {
        run.name: [Alarm(one.step, one.rule, one.level != "warn") for one in replay(rules, run.records)] for run in runs
    }


class Rate(NamedTuple):
    """Events in 1,000 steps, with the exact 95 % interval of a Poisson count."""

    count: int
    steps: int
    rate: float
    low: float
    high: float


def poisson(count: int, steps: int) -> Rate:
    """The rate of ``count`` events in so many steps (Garwood, Biometrika 1936).

    Raises:
        ValueError: there are no steps.
    """
    if steps < 1:
        raise ValueError("a rate needs steps")
    low = chi2.ppf(0.025, 2 * count) / 2 if count else 0.0
    high = chi2.ppf(0.975, 2 * count + 2) / 2
    return Rate(count, steps, *(1000 * float(value) / steps for value in (count, low, high)))


class Quartiles(NamedTuple):
    """Median and the two quartiles."""

    low: float
    median: float
    high: float


def quartiles(values: Sequence[float]) -> Quartiles | None:
    return Quartiles(*map(float, np.quantile(values, [0.25, 0.5, 0.75]))) if values else None


@dataclass(frozen=True)
class FalseAlarms:
    """What the rules say of healthy runs; ``rules`` are the alarms by rule and condition."""

    rate: Rate
    runs: Proportion
    rules: Mapping[tuple[str, str], int]


def false_alarms(healthy: Sequence[Run], alarms: Alarms, acting: bool = True) -> FalseAlarms:
    """Alarms of healthy runs; without ``acting`` warnings count too."""
    counted = {run.name: [a for a in alarms[run.name] if a.acting or not acting] for run in healthy}
    return FalseAlarms(
        poisson(sum(map(len, counted.values())), sum(len(run.records) for run in healthy)),
        wilson(sum(map(bool, counted.values())), len(healthy)),
        Counter((alarm.rule, run.condition) for run in healthy for alarm in counted[run.name]),
    )


@dataclass(frozen=True)
class Detection:
    """How the rules do on the runs of one fault.

    ``delays`` are steps from the first in which the fault hurts to the first acting alarm, negative where the alarm
    came before; of the runs that have both. ``after`` are steps from the beginning of the fault to that alarm.
    ``first`` is the rule that acted first most often, ``early`` counts the alarms that were no later than the harm.
    """

    runs: int
    crashed: int
    hurt: int
    acted: int
    fired: int
    early: int
    delays: Quartiles | None
    after: Quartiles | None
    first: str


def detection(runs: Sequence[Run], alarms: Alarms, norm: Norm) -> Detection:
    """Alarms from the step on in which the fault begins; earlier ones know nothing of it."""
    fired = {run.name: [a for a in alarms[run.name] if a.step >= run.begins] for run in runs}
    acting = {name: next((a for a in found if a.acting), None) for name, found in fired.items()}
    since = {run.name: hurt(run, norm) for run in runs}
    delays, after = [], []
    for run in runs:
        alarm, began = acting[run.name], since[run.name]
        if alarm is not None:
            after.append(alarm.step + 1 - run.begins)
            if began is not None:
                delays.append(alarm.step + 1 - began)
    rules = Counter(alarm.rule for alarm in acting.values() if alarm is not None)
    return Detection(
        runs=len(runs),
        crashed=sum(bool(run.crashed) for run in runs),
        hurt=sum(step is not None for step in since.values()),
        acted=len(after),
        fired=sum(map(bool, fired.values())),
        early=sum(delay <= 0 for delay in delays),
        delays=quartiles(delays),
        after=quartiles(after),
        first=rules.most_common(1)[0][0] if rules else "",
    )


@dataclass(frozen=True)
class Rescue:
    """How runs ended: ``well`` of ``runs``, and the steps that were lost on the way (median)."""

    runs: int
    well: int
    lost: float


def rescue(runs: Sequence[Run], norm: Norm) -> Rescue | None:
    """Steps lost are those that were trained and are not behind the checkpoint which the run ended with."""
    if not runs:
        return None
    lost = float(np.median([len(run.records) - run.progress for run in runs]))
    return Rescue(len(runs), sum(rescued(run, norm) for run in runs), lost)
