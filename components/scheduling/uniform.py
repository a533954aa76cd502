"""Every prompt once an epoch, in an order that the seed and the epoch decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from components.scheduling.base import Schedule, State
from components.scheduling.checks import whole
from components.scheduling.packing import Array
from components.types import Prompt


class Uniform(Schedule):
    """Draws without replacement inside an epoch; the order of an epoch is a function of seed and epoch number."""

    def __init__(self, prompts: Sequence[Prompt], seed: int) -> None:
        super().__init__(prompts, seed)
        self._drawn = 0
        self._epoch, self._order = 0, self._shuffled(0)

    def next(self, count: int) -> list[Prompt]:
        places = self._upcoming(count)
        self._drawn += count
        return [self.prompts[place] for place in places]

    def _upcoming(self, count: int) -> Array:
        """The next ``count`` places; a second epoch follows the first."""
        found: list[Array] = []
        position, end = self._drawn, self._drawn + count
        while position < end:
            epoch, start = divmod(position, len(self.prompts))
            found.append(self._order_of(epoch)[start : start + end - position])
            position += len(found[-1])
        return np.concatenate(found)

    def _order_of(self, epoch: int) -> Array:
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self._shuffled(epoch)
        return self._order

    def fork(self, number: int) -> None:
        super().fork(number)
        self._order = self._shuffled(self._epoch)

    def _shuffled(self, epoch: int) -> Array:
        rng = np.random.default_rng(self.stream("uniform", epoch))
        return rng.permutation(len(self.prompts))

    def state_dict(self) -> State:
        return {**super().state_dict(), "drawn": self._drawn}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._drawn = whole(state, "drawn")
