"""Every prompt once an epoch in the order of `uniform`, but for those that are skipped by chance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from components.scheduling.base import State
from components.scheduling.checks import whole
from components.scheduling.packing import Array
from components.scheduling.uniform import Uniform
from components.types import Prompt

CHUNK = 64
"""Prompts considered at a time at the least."""


class Walk(Uniform):
    """Visits the prompts in a seeded order and draws each with the probability that `admission` gives it.

    Where every prompt is admitted it draws what `Uniform` draws. A draw holds distinct prompts as long as there are
    enough; after a whole epoch in which too few were admitted, it takes what comes.
    """

    def __init__(self, prompts: Sequence[Prompt], seed: int) -> None:
        super().__init__(prompts, seed)
        self._draws, self._skipped = 0, 0

    @abstractmethod
    def admission(self, places: Array) -> Array:
        """The probability, above 0, with which each of ``places`` is drawn when it is visited."""

    def next(self, count: int) -> list[Prompt]:
        drawn: list[int] = []
        visited = 0
        while len(drawn) < count:
            chunk = self._visit(max(CHUNK, count - len(drawn)))
            rng = np.random.default_rng(self.stream("admission", self._drawn))
            admitted = rng.random(len(chunk)) < (1 if visited >= len(self.prompts) else self.admission(chunk))
            if visited < 2 * len(self.prompts):
                admitted &= ~np.isin(chunk, drawn)
            ends = np.flatnonzero(admitted)[: count - len(drawn)]
            used = len(chunk) if len(drawn) + len(ends) < count else int(ends[-1]) + 1
            drawn += chunk[ends].tolist()
            self._drawn, visited = self._drawn + used, visited + used
            self._skipped += used - len(ends)
        self._draws += 1
        return [self.prompts[place] for place in drawn]

    def _visit(self, count: int) -> Array:
        """The next places of this epoch's order, at most ``count``."""
        epoch, start = divmod(self._drawn, len(self.prompts))
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self._shuffled(epoch)
        return self._order[start : start + count]

    def metrics(self) -> dict[str, float]:
        """With the prompts that were skipped since these were last read."""
        found = {**super().metrics(), "skipped": float(self._skipped)}
        self._skipped = 0
        return found

    def state_dict(self) -> State:
        return {**super().state_dict(), "draws": self._draws, "skipped": self._skipped}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._draws, self._skipped = whole(state, "draws"), whole(state, "skipped")
