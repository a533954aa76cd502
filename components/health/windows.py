"""Functions over a signal's history, as health rules may call them: ``mean(reward, 20)``.

With a count ``n`` a function looks at the latest n steps (`baseline`: at the first n) and exists once n steps have
been seen; without one it looks at the whole run. Steps in which the signal does not exist are passed over, so a
signal measured every 20 steps works too. A result of None means: does not exist yet.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from statistics import fmean

Points = Sequence[tuple[int, float]]
"""(step, value) of the finite values of one signal, in order of the steps."""

Series = Sequence[tuple[int, float | None]]
"""The same with None for a value that was not finite."""

_step = itemgetter(0)


def _last(points: Points) -> float:
    return points[-1][1]


def _first(points: Points) -> float:
    return points[0][1]


def _mean(points: Points) -> float:
    return fmean(value for _, value in points)


def _min(points: Points) -> float:
    return min(value for _, value in points)


def _max(points: Points) -> float:
    return max(value for _, value in points)


def _slope(points: Points) -> float | None:
    """Least-squares change per step."""
    if len(points) < 2:
        return None
    middle, level = fmean(step for step, _ in points), _mean(points)
    spread = sum((step - middle) ** 2 for step, _ in points)
    return sum((step - middle) * (value - level) for step, value in points) / spread


WINDOWS: Mapping[str, Callable[[Points], float | None]] = {
    "last": _last,
    "first": _first,
    "baseline": _mean,
    "mean": _mean,
    "min": _min,
    "max": _max,
    "slope": _slope,
}

COUNTED = frozenset({"baseline"})
"""Functions that make no sense without a count."""


def window(name: str, count: int | None, steps: Sequence[int], series: Series) -> float | None:
    """The value of one function call.

    Args:
        name: a key of `WINDOWS`.
        count: the call's second argument, in steps; None for the whole run.
        steps: every step seen so far, in order.
        series: what the signal was in the steps in which it existed.
    """
    if count is not None:
        if len(steps) < count:
            return None
        if name == "baseline":
            series = series[: bisect_right(series, steps[count - 1], key=_step)]
        else:
            series = series[bisect_left(series, steps[-count], key=_step) :]
    points = [(step, value) for step, value in series if value is not None]
    return WINDOWS[name](points) if points else None
