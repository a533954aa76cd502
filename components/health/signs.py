"""Whether updates do what they are made for, family by family, over the steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from components.health.sequential import BETS, Count, detect, evidence

USUAL = 0.8
"""Share of the updates of a sound run, at least, that raise what had positive advantages above what had negative."""


class Signs:
    """Bets on "fewer than `USUAL` of the updates do", by family."""

    def __init__(self) -> None:
        self._stakes: dict[str, list[float]] = {}

    def observe(self, raised: Mapping[str, bool]) -> float | None:
        """Evidence, nats, that the updates of some family do not; None where nothing was looked at."""
        for family, right in raised.items():
            before = self._stakes.get(family, [0.0] * len(BETS))
            self._stakes[family] = detect(before, Count(int(right), 1), USUAL)
        if not raised:
            return None
        return max(map(evidence, self._stakes.values())) - math.log(len(self._stakes))

    @property
    def worst(self) -> str:
        """The family with the most evidence."""
        return max(self._stakes, key=lambda family: evidence(self._stakes[family]), default="")

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {family: list(stakes) for family, stakes in self._stakes.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self._stakes = {family: list(map(float, stakes)) for family, stakes in state.items()}
