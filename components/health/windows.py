"""Functions over a signal's history, as health rules may call them: ``mean(reward, 20)``.

With a count ``n`` a function looks at the latest n steps and exists once n steps have been seen; without one it looks
at the whole run. ``baseline`` looks at the first n healthy steps (those on which no acting rule held) and never changes
afterwards. Steps in which the signal does not exist are passed over, so a signal measured every 20 steps works too. A
result of None means: does not exist yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from components.health.history import History, Total

Points = Sequence[tuple[int, float]]
"""(step, value) of the finite values in a window, in order of the steps; never empty."""


@dataclass(frozen=True, slots=True)
class Window:
    """One function: over a window, and over a whole run where ``total`` is given."""

    of: Callable[..., float | None]
    total: Callable[[Total], float | None] | None = None


def _values(points: Points) -> list[float]:
    return [value for _, value in points]


def _slope(points: Points) -> float | None:
    """Least-squares change per step."""
    if len(points) < 2:
        return None
    middle, level = fmean(step for step, _ in points), fmean(_values(points))
    spread = sum((step - middle) ** 2 for step, _ in points)
    return sum((step - middle) * (value - level) for step, value in points) / spread


def _total_slope(total: Total) -> float | None:
    if total.count < 2:
        return None
    spread = total.count * total.sum_xx - total.sum_x**2
    return (total.count * total.sum_xy - total.sum_x * total.sum_y) / spread


def _std(points: Points) -> float | None:
    """Sample standard deviation; of one value there is none."""
    return stdev(_values(points)) if len(points) > 1 else None


WINDOWS: Mapping[str, Window] = {
    "last": Window(lambda points: points[-1][1], lambda total: total.last),
    "first": Window(lambda points: points[0][1], lambda total: total.first),
    "mean": Window(lambda points: fmean(_values(points)), lambda total: total.sum_y / total.count),
    "min": Window(lambda points: min(_values(points)), lambda total: total.low),
    "max": Window(lambda points: max(_values(points)), lambda total: total.high),
    "slope": Window(_slope, _total_slope),
    "std": Window(_std),
    "quantile": Window(lambda points, share: float(np.quantile(_values(points), share))),
    "share": Window(lambda points: fmean(_values(points))),  # of a condition, which is 0 or 1
    "baseline": Window(lambda points: fmean(_values(points))),
    "baseline_std": Window(_std),
}

BASELINES = frozenset({"baseline", "baseline_std"})
"""Functions over the first healthy steps."""
COUNTED = frozenset(name for name, window in WINDOWS.items() if window.total is None)
"""Functions that make no sense without a count."""


def measure(
    function: str, history: History, *, count: int | None, seen: int, healthy: int, share: float | None = None
) -> float | None:
    """The value of one function call.

    Args:
        count: the window in steps; None for the whole run.
        seen: steps observed so far.
        healthy: healthy ones among them.
        share: which quantile, in [0, 1].
    """
    window = WINDOWS[function]
    if count is None:
        return window.total(history.total) if window.total and history.total.count else None
    if (healthy if function in BASELINES else seen) < count:
        return None
    if function in BASELINES:
        points = [(step, value) for step, value in history.base if step < count]
    else:
        points = [(s, v) for position, s, v in history.recent if position >= seen - count and v is not None]
    if not points:
        return None
    return window.of(points) if share is None else window.of(points, share)
