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
        drawn: list[Prompt] = []
        while len(drawn) < count:
            epoch, start = divmod(self._drawn, len(self.prompts))
            if epoch != self._epoch:
                self._epoch, self._order = epoch, self._shuffled(epoch)
            taken = self._order[start : start + count - len(drawn)]
            drawn += [self.prompts[place] for place in taken]
            self._drawn += len(taken)
        return drawn

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
