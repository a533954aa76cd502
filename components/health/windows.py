"""Functions over a signal's history, as health rules may call them: ``mean(reward, 20)``.

With a count ``n`` a function looks at the latest n steps and exists once n steps have been seen; without one it looks
at the whole run. ``baseline`` looks at the first n healthy steps (those on which no acting rule held) and never changes
afterwards. Steps in which the signal does not exist are passed over, so a signal measured every 20 steps works too. A
result of None means: does not exist yet.

What is remembered of a signal does not grow with the run, so judging step 100,000 costs what judging step 100 does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

import numpy as np

Points = Sequence[tuple[int, float]]
"""(step, value) of the finite values in a window, in order of the steps; never empty."""
EVIDENCE = 20
"""Values of each signal that a verdict carries at the most."""


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


@dataclass
class Total:
    """Everything about a whole run that needs no window. x counts from the first step with a value."""

    count: int = 0
    origin: int = 0
    first: float = 0.0
    last: float = 0.0
    low: float = 0.0
    high: float = 0.0
    sum_x: float = 0.0
    sum_y: float = 0.0
    sum_xx: float = 0.0
    sum_xy: float = 0.0

    def add(self, step: int, value: float) -> None:
        """Take one finite value in."""
        if not self.count:
            self.origin, self.first, self.low, self.high = step, value, value, value
        x = step - self.origin
        self.count, self.last = self.count + 1, value
        self.low, self.high = min(self.low, value), max(self.high, value)
        self.sum_x, self.sum_y = self.sum_x + x, self.sum_y + value
        self.sum_xx, self.sum_xy = self.sum_xx + x * x, self.sum_xy + x * value


@dataclass
class History:
    """One signal of one run.

    ``reach`` is the longest window, in steps, that a rule looks back over; ``opening`` the longest baseline. A step is
    known by its position, the number of steps observed before it: after a roll-back step numbers have a gap.
    """

    reach: int = 1
    opening: int = 0
    total: Total = field(default_factory=Total)
    recent: deque[tuple[int, int, float | None]] = field(default_factory=deque)  # (position, step, value)
    latest: deque[tuple[int, float | None]] = field(default_factory=lambda: deque(maxlen=EVIDENCE))  # (step, value)
    base: list[tuple[int, float]] = field(default_factory=list)  # (healthy steps before it, value)

    def add(self, position: int, step: int, value: float | None) -> None:
        """Take the value of a step in; None for one that is not finite."""
        self.recent.append((position, step, value))
        while self.recent[0][0] <= position - self.reach:
            self.recent.popleft()
        self.latest.append((step, value))
        if value is not None:
            self.total.add(step, value)

    def freeze(self, healthy: int) -> None:
        """Count the latest value as one of a healthy step, of which there were ``healthy`` before."""
        if healthy < self.opening and self.latest and self.latest[-1][1] is not None:
            self.base.append((healthy, self.latest[-1][1]))

    def state_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "total": dict(vars(self.total)),
            "recent": [list(point) for point in self.recent],
            "latest": [list(point) for point in self.latest],
            "base": [list(point) for point in self.base],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`.

        Raises:
            ValueError: a field is missing or unknown.
        """
        if set(state) != {"total", "recent", "latest", "base"} or set(state["total"]) != set(vars(Total())):
            raise ValueError(f"history of a signal has {sorted(state)}")
        self.total = Total(**state["total"])
        self.recent = deque((int(p), int(s), v) for p, s, v in state["recent"])
        self.latest = deque(((int(s), v) for s, v in state["latest"]), maxlen=EVIDENCE)
        self.base = [(int(h), float(v)) for h, v in state["base"]]
