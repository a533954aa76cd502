"""How far sampler and learner usually are apart: what a gap is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

FIRST = 4
"""Number of earlier steps that define what is usual."""
ROUNDING = 1e-9
"""Nats a token (k3) that rounding in single precision makes at most."""
TIMES, LEAST = 20.0, 1e-4
"""A gap is unusual from so many times the usual one on, and never below the second, nats a token (k3)."""


class UsualGap:
    """``mismatch_k3`` of the first steps."""

    def __init__(self) -> None:
        self._first: list[float] = []

    def observe(self, signals: Mapping[str, float]) -> dict[str, float]:
        """``mismatch_times``: the gap as a multiple of what is usual at most; nothing while that is not known."""
        gap = signals.get("mismatch_k3")
        if gap is None:
            return {}
        if len(self._first) < FIRST:
            self._first.append(gap)
            return {}
        return {"mismatch_times": gap / self.limit}

    @property
    def exact(self) -> bool:
        """Whether sampler and learner compute the same log-probabilities, but for rounding."""
        return bool(self._first) and max(self._first) < ROUNDING

    @property
    def limit(self) -> float:
        """Nats a token (k3) that are usual at most."""
        return max(LEAST, TIMES * fmean(self._first)) if self._first else LEAST

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {"first": list(self._first)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self._first = list(map(float, state["first"]))
