"""What a monitor remembers of one signal: running figures of the whole run, and the latest values.

Memory does not grow with the run, so judging step 100,000 costs what judging step 100 does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

EVIDENCE = 20
"""Values of each signal that a verdict carries at the most."""


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
