"""Whether held-out accuracy falls, as a whole and in every family of prompts, tested after every measurement; and
whether held-out completions lose their form.

A share of completions with their form is tested as an accuracy is: bets on "it is at least the best lower bound so far,
less a tolerance" that may be looked at after every measurement (2203.03532). What is usual is said by the first
measurement. Entropy that falls and divergence that rises have no such test: both do so in healthy runs.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from components.errors import InputError
from components.health.sequential import BETS, Count, detect, evidence, fell, lower_bound
from components.types import Completion, Group, Score, StepRecord

ALL = "all"
"""The stream of all dev prompts; each family has one of its own name."""
TOLERANCE = 0.02
"""How far the accuracy may be below the lower bound of its best before a test counts it as a fall."""
BOUND = 6.9
"""Nats of the lower bounds: each is wrong once in a thousand measurements, or less often."""
POOLED = (1, 2, 4)
"""Latest measurements that a lower bound is taken over: of several it is tighter."""

BACK, LOST = 3.0, 5.0
"""Nats below which an accuracy counts as back at its best, and above which it counts as lost. Of healthy runs of thirty
measurements one in eight is at times not back, and fewer than one in a hundred has lost at its end."""

_AGAIN = "run the train stage again"

Counts = Mapping[str, Count]
USUAL = 0.95
"""Share of the completions of the first measurement that are usual, in each respect."""
PARTS = "part_"


def counts(groups: Sequence[Group]) -> dict[str, Count]:
    """Right answers of scorable ones: of all groups, and of each family where there are several."""
    found: dict[str, Count] = {}
    for group in groups:
        if group.accuracies:
            count = Count(sum(accuracy == 1.0 for accuracy in group.accuracies), len(group.accuracies))
            for name in (ALL, group.prompt.family):
                found[name] = found.get(name, Count(0, 0)) + count
    return found if len(found) > 2 else {name: count for name, count in found.items() if name == ALL}


@dataclass
class Stream:
    """One accuracy over time. ``best`` is the highest lower bound so far, ``since`` the step of the last measurement
    before the present evidence began to grow."""

    best: float = 0.0
    since: int = -1
    stakes: list[float] = field(default_factory=lambda: [0.0] * len(BETS))
    latest: deque[Count] = field(default_factory=lambda: deque(maxlen=max(POOLED)))

    def add(self, step: int, count: Count) -> float:
        """Take the measurement of a step in; returns the evidence, nats, that the accuracy is below its best."""
        if self.best > TOLERANCE:  # the bound is of earlier measurements alone
            self.stakes = detect(self.stakes, count, self.best - TOLERANCE)
        self.latest.append(count)
        recent = list(self.latest)
        pooled = (sum(recent[-n:], Count(0, 0)) for n in POOLED if n <= len(recent))
        self.best = max(self.best, *(lower_bound(one, BOUND) for one in pooled))
        found = evidence(self.stakes)
        self.since = step if found <= 0 else self.since
        return found


class Falls:
    """The streams of a run."""

    def __init__(self) -> None:
        self._streams: dict[str, Stream] = {}

    def observe(self, step: int, found: Counts) -> dict[str, float]:
        """Evidence, nats, by stream, that it has fallen below its best. All streams share one rate of false alarms."""
        shared = math.log(max(1, len(found)))
        streams = {name: self._streams.setdefault(name, Stream()) for name in found}
        return {name: stream.add(step, found[name]) - shared for name, stream in streams.items()}

    def since(self, name: str) -> int:
        """The step of the last measurement that is no part of a stream's evidence."""
        return self._streams[name].since

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {
            name: {**vars(one), "stakes": list(one.stakes), "latest": [list(count) for count in one.latest]}
            for name, one in self._streams.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`.

        Raises:
            ValueError: another set of fields.
        """
        self._streams = {}
        for name, one in state.items():
            if set(one) != set(vars(Stream())):
                raise ValueError(f"state of {name} has {sorted(one)}")
            latest = deque((Count(*count) for count in one["latest"]), maxlen=max(POOLED))
            stakes = list(map(float, one["stakes"]))
            self._streams[name] = Stream(float(one["best"]), int(one["since"]), stakes, latest)


def best(before: Counts, found: Counts) -> dict[str, Count]:
    """By stream, the measurement whose lower bound is the highest."""
    new = {
        name: max((before[name], count), key=lambda one: lower_bound(one, BOUND)) if name in before else count
        for name, count in found.items()
    }
    return {**before, **new}


def below(before: Counts, after: Counts, limit: float = BACK) -> tuple[str, ...]:
    """The streams that are below what they were, with more evidence than ``limit`` nats."""
    return tuple(name for name, nats in fallen(before, after).items() if nats > limit)


def recorded(record: StepRecord) -> dict[str, Count]:
    """The counts in a record of a run; empty where nothing was measured in that step.

    Raises:
        InputError: they are no counts.
    """
    found = record.notes.get("held_out", {})
    if not isinstance(found, dict) or not all(map(_is_count, found.values())):
        raise InputError("held-out answers are no counts", where=f"record of step {record.step}", how=_AGAIN)
    return {str(name): Count(*count) for name, count in found.items()}


def _is_count(value: object) -> bool:
    if not isinstance(value, list) or [type(one) for one in value] != [int, int]:
        return False
    return bool(0 <= value[0] <= value[1] and value[1] > 0)


def lost(records: Iterable[StepRecord]) -> list[str]:
    """What the last measurement of a run lacks of the best one before it, a sentence a stream."""
    before: dict[str, Count] = {}
    after: dict[str, Count] = {}
    for record in records:
        if found := recorded(record):
            before, after = best(before, after), found
        if "measured_anew" in record.notes:
            before, after = {}, {}
    return [
        f"{'held-out accuracy' if name == ALL else f'held-out accuracy of {name}'} was {before[name].right} of "
        f"{before[name].of} at its best and is {after[name].right} of {after[name].of} at the end"
        for name in below(before, after, LOST)
    ]


def fallen(before: Counts, after: Counts) -> dict[str, float]:
    """Evidence, nats, by stream, that one policy answers the same prompts worse than it did when it was measured
    before; all streams share one rate of false alarms. In the order of ``after``: a resumed run has ``before`` from a
    file, whose names are sorted."""
    both = [name for name in after if name in before]
    return {name: fell(before[name], after[name]) - math.log(len(both)) for name in both}


class Forms:
    """Shares of held-out completions over time: of those that end by themselves, can be judged, have a usual length and
    surprisal, or a usual value of each reward part. ``limits`` are the largest usual length, tokens, and surprisal,
    nats a token, and for each reward part its smallest usual value with the sign turned."""

    def __init__(self) -> None:
        self._falls = Falls()
        self.limits: dict[str, float] = {}

    def observe(self, step: int, groups: Sequence[Group]) -> dict[str, float]:
        """Evidence, nats, that a share has fallen, by its name, ``parts`` for the worst of the reward parts; nothing
        where nothing was measured."""
        completions = [completion for group in groups for completion in group.completions]
        scores = [score for group in groups for score in group.scores]
        if not completions:
            return {}
        shares = {
            "ended": _share([one.finish_reason != "length" for one in completions]),
            "scorable": _share([one.accuracy is not None for one in scores]),
        }
        for name, values in _statistics(completions, scores).items():
            sign = -1 if name.startswith(PARTS) else 1
            signed = [sign * value for value in values]
            limit = self.limits.setdefault(name, float(np.quantile(signed, USUAL, method="higher")))
            shares[name] = _share([value <= limit for value in signed])
        return _summary(self._falls.observe(step, shares))

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {"falls": self._falls.state_dict(), "limits": dict(self.limits)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self._falls.load_state_dict(state["falls"])
        self.limits = {name: float(limit) for name, limit in state["limits"].items()}


def _statistics(completions: Sequence[Completion], scores: Sequence[Score]) -> dict[str, list[float]]:
    """What is compared with the first measurement, by name; only what is known of some completion."""
    found = {
        "length": [float(len(one.token_ids)) for one in completions],
        "surprisal": [-sum(one.logprobs) / len(one.logprobs) for one in completions if one.logprobs],
    }
    for score in scores:
        for name, value in score.parts.items():
            found.setdefault(PARTS + name, []).append(value)
    finite = {name: [value for value in values if math.isfinite(value)] for name, values in found.items()}
    return {name: values for name, values in finite.items() if values}


def _share(these: Sequence[bool]) -> Count:
    return Count(sum(these), len(these))


def _summary(found: Mapping[str, float]) -> dict[str, float]:
    """The evidence with that of the worst reward part in place of all of them."""
    parts = [nats for name, nats in found.items() if name.startswith(PARTS)]
    others = {name: nats for name, nats in found.items() if not name.startswith(PARTS)}
    return others | ({"parts": max(parts)} if parts else {})
