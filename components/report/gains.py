"""What the trained policy gained over SFT and over the champion: on all prompts, per suite, per slice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.report.drawing import Axis, axis_over
from components.report.run import Part, dig
from components.report.tables import natural
from components.words import percent, points

SIDES = {"sft": ("SFT", ""), "champion": ("Champion", "_over_champion")}
"""Whom it is compared with -> what a reader calls it, and how the names of its gains end."""
SLICES = {
    "families": "family",
    "difficulty": "difficulty",
    "prompt_length": "tokens of the prompt",
    "sources": "source",
}
"""Slices in `out/evaluation.json` -> what a reader calls them. One of a single slice says nothing and is left out."""
SLICE = "pass@1 by "
"""Begins the title of the rows of a slice."""
CONFIDENCE = 0.95
Z = 1.959964
"""Of an interval of `CONFIDENCE`."""


@dataclass(frozen=True)
class Gain:
    """Shares in [0, 1] before and after, and their difference with its 95 % interval where one was computed.

    ``p`` is McNemar's, of greedy answers. ``detectable`` is the least difference that so many prompts would show.
    """

    name: str
    prompts: int | None
    before: float | None
    after: float | None
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    detectable: float | None = None
    paired: bool = True
    """False: the interval is `unpaired`, so wider than what the same prompts could show."""
    few: bool = False
    """Fewer prompts than `evaluation.small`: an anecdote, whatever its interval, which may run off the plot."""
    confidence: float = CONFIDENCE

    @property
    def alike(self) -> bool:
        """An interval without width, as earlier versions had it where every prompt changed by as much: resampling them
        shows no spread, which says nothing of others."""
        return self.paired and self.low is not None and self.low == self.high

    @property
    def direction(self) -> int:
        """1 where the interval of enough prompts lies above 0, -1 where it lies below, else 0."""
        if self.few or self.low is None or self.high is None:
            return 0
        return (self.low > 0) - (self.high < 0)

    @property
    def clear(self) -> bool:
        """The interval of enough prompts excludes 0."""
        return self.direction != 0

    @property
    def span(self) -> str:
        """From where to where, or why that cannot be said."""
        if self.alike and self.few:
            return "too few prompts for an interval"
        if self.alike:
            return f"no interval: {'no prompt came out differently' if self.mean == 0 else 'all prompts changed alike'}"
        span = "no interval" if self.low is None else f"{points(self.low)} to {points(self.high)}"
        return f"{span}, few prompts" if self.few else span

    @property
    def interval(self) -> str:
        """The same, and what it is."""
        return self.span if self.alike or self.low is None else f"{percent(self.confidence, 0)} interval {self.span}"

    @property
    def words(self) -> str:
        if self.mean is None:
            return "not measured"
        if self.low is None or (self.alike and self.mean == 0):
            return self.span
        said = {1: "better", -1: "worse", 0: "no clear change"}[self.direction]
        return f"{said}, few prompts" if self.few else said


@dataclass(frozen=True)
class Forest:
    """All rows against one other policy. ``before`` is what its column is called."""

    name: str
    before: str
    groups: dict[str, list[Gain]]
    axis: Axis
    after: str = "Trained"
    """What the column of the other side is called."""

    @property
    def detectable(self) -> float | None:
        """Of sampled pass@1 over all prompts."""
        return next((row.detectable for rows in self.groups.values() for row in rows), None)

    @property
    def unpaired(self) -> bool:
        """Whether any interval ignores that the prompts are the same."""
        return any(row.low is not None and not row.paired for rows in self.groups.values() for row in rows)


def sampled(evaluation: Part | None, side: str, small: int) -> Gain | None:
    """In pass@1 on all test prompts over ``side``, a key of `SIDES`; None where nothing pairs the two."""
    part, suffix = _against(evaluation, side), SIDES[side][1]
    gain = dig(part, f"gain{suffix}")
    shares = dig(part, side, "pass_at_1"), dig(part, "trained", "pass_at_1")
    return None if gain is None else _gain("pass@1, sampled", dig(part, "prompts"), *shares, gain, small)


def forests(evaluation: Part | None, small: int) -> list[Forest]:
    """One over the SFT checkpoint and, where there is a champion, one over it.

    Args:
        small: `evaluation.small` of the run: what fewer prompts show is never called clear.
    """
    found = []
    for side, (name, suffix) in SIDES.items():
        part = _against(evaluation, side)
        if dig(part, side) and dig(part, "trained"):
            groups = {title: rows for title, rows in _groups(part, side, suffix, small) if rows}
            found.append(Forest(side, name, groups, axis_of(groups)))
    return found


def axis_of(groups: Mapping[str, list[Gain]]) -> Axis:
    """The axis that these rows share."""
    every = [row for rows in groups.values() for row in rows]
    enough = [row for row in every if not row.few] or every
    ends = [row.mean for row in every] + [end for row in enough for end in (row.low, row.high)]
    ends += [sign * row.detectable for row in every if row.detectable is not None for sign in (1, -1)]
    return axis_over(ends)


def _against(evaluation: Part | None, side: str) -> Part:
    """The figures that are compared with those of ``side``: for a champion perhaps newer ones."""
    newer = dig(evaluation, "against_champion") if side == "champion" else None
    return {**(evaluation or {}), **(newer or {})}


def _groups(evaluation: Part, side: str, suffix: str, small: int) -> Iterator[tuple[str, list[Gain]]]:
    yield "All test prompts", _whole(evaluation, side, suffix, small)
    for name, suite in sorted((dig(evaluation, "suites") or {}).items()):
        yield f"Suite {name}", _whole(suite, side, suffix, small)
    for kind, title in SLICES.items():
        yield f"{SLICE}{title}", _slice(evaluation, side, kind, f"gain{suffix}", small)


def _whole(part: Part | None, side: str, suffix: str, small: int) -> list[Gain]:
    """Sampled, greedy, of k, by the majority of k; without what was not sampled."""
    k = str(dig(part, "k"))
    measures = (
        ("pass@1, sampled", ("pass_at_1",), f"gain{suffix}"),
        ("accuracy, greedy", ("greedy",), f"greedy_gain{suffix}"),
        (f"pass@{k}", ("pass_at_k",), ""),
        (f"majority of {k}", ("maj_at", k), ""),
    )
    rows = [
        _gain(name, dig(part, "prompts"), dig(part, side, *keys), dig(part, "trained", *keys), dig(part, gain), small)
        for name, keys, gain in measures
    ]
    return [row for row in rows if row.after is not None and row.mean is not None]


def _slice(evaluation: Part, side: str, kind: str, gain: str, small: int) -> list[Gain]:
    before, after = dig(evaluation, side, kind) or {}, dig(evaluation, "trained", kind) or {}
    names = sorted({*before, *after}, key=natural)
    rows = []
    for name in names if len(names) > 1 else ():
        prompts = dig(after, name, "prompts") or dig(before, name, "prompts")
        shares = dig(before, name, "pass_at_1"), dig(after, name, "pass_at_1")
        row = _gain(name or "(none)", prompts, *shares, dig(after, name, gain), small)
        rows.append(replace(row, few=row.few or dig(after, name, "small") is True))
    return rows


def _gain(
    name: str,
    prompts: int | None,
    before: float | None,
    after: float | None,
    gain: Mapping[str, Any] | None,
    small: int,
) -> Gain:
    """``gain`` pairs what was scorable under both; without it the shares are all there is."""
    few = _few(prompts, gain, small)
    if gain is not None:
        figures = {key: dig(gain, key) for key in ("mean", "low", "high", "detectable")}
        sure = dig(gain, "confidence") or CONFIDENCE
        return Gain(name, prompts, before, after, p=dig(gain, "mcnemar_p"), few=few, confidence=sure, **figures)
    if before is None or after is None:
        return Gain(name, prompts, before, after, few=few)
    low, high = unpaired(before, after, prompts) if prompts else (None, None)
    return Gain(name, prompts, before, after, after - before, low, high, paired=False, few=few)


def _few(prompts: int | None, gain: Mapping[str, Any] | None, small: int) -> bool:
    """As the evaluation says itself, or else by the prompts that were scorable under both."""
    if (said := dig(gain, "small")) is not None:
        return bool(said)
    scorable = prompts if gain is None else gain.get("n", prompts)
    return scorable is not None and scorable < small


def unpaired(before: float, after: float, prompts: int) -> tuple[float, float]:
    """Newcombe's 95 % interval of the difference of two shares (Statistics in Medicine 17, 873, method 10), as if the
    prompts were others: without the results of single prompts nothing narrower is known. Shares that are means over
    samples vary less than the yes or no that it assumes, so it is wide on both accounts."""
    (low, high), (new_low, new_high) = score_interval(before, prompts), score_interval(after, prompts)
    mean = after - before
    return (
        mean - math.hypot(after - new_low, high - before),
        mean + math.hypot(new_high - after, before - low),
    )


def score_interval(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share that need not be a whole number of n."""
    centre, half = share + Z**2 / (2 * n), Z * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    scale = 1 + Z**2 / n
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)
