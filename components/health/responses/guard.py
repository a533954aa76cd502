"""The largest gradient norm of an update that is still made."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from statistics import median
from typing import Any

from components.config.judgement import ResponseSettings


class Guard:
    """A multiple of the median of the last norms; of the largest so far until there are enough for a median."""

    def __init__(self, settings: ResponseSettings, enabled: bool = True) -> None:
        self._settings, self.enabled = settings, enabled and settings.enabled
        self._norms: deque[float] = deque(maxlen=settings.norm_window)

    @property
    def limit(self) -> float:
        """Norms above it are skipped."""
        if not self.enabled or not self._norms:
            return math.inf
        usual = median(self._norms) if len(self._norms) == self._settings.norm_window else max(self._norms)
        return self._settings.norm_factor * usual

    def observe(self, signals: Mapping[str, float]) -> None:
        """Learn from a step's largest norm; one that was skipped counts as the limit, so that a run whose gradients
        stay large is not locked out for good.

        One without any gradient (every group all right or all wrong) teaches nothing: a median of 0 would skip every
        update that has one.
        """
        norm = signals.get("grad_norm")
        if norm and math.isfinite(norm):
            self._norms.append(min(norm, self.limit))

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {"norms": list(self._norms)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`.

        Raises:
            ValueError: another set of fields.
        """
        if set(state) != {"norms"}:
            raise ValueError(f"state of the guard has {sorted(state)}")
        self._norms = deque(map(float, state["norms"]), maxlen=self._settings.norm_window)
