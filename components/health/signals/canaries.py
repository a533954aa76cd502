"""How far probe sets have fallen below their own beginning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class CanaryBaseline:
    """Remembers what every probe set was answered like the first time."""

    def __init__(self) -> None:
        self._first: dict[str, float] = {}

    def observe(self, scores: Mapping[str, float]) -> dict[str, float]:
        """``canary_drop``: the largest fall of a set below its own first score; {} where no set was probed.

        A set that rose does not hide one that fell; where all of them rose it is 0.

        Args:
            scores: ``canary_<name>`` of the sets that were probed in this step.
        """
        falls = [self._first.setdefault(name, score) - score for name, score in scores.items()]
        return {"canary_drop": max(0.0, *falls)} if falls else {}

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {"first": dict(self._first)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`.

        Raises:
            ValueError: another set of fields.
        """
        if set(state) != {"first"}:
            raise ValueError(f"state of the canaries has {sorted(state)}")
        self._first = {str(name): float(score) for name, score in state["first"].items()}
