"""Every prompt once an epoch, in an order that the seed and the epoch decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from components.scheduling.base import Schedule, State
from components.seeds import derive
from components.types import Prompt


class Uniform(Schedule):
    """Draws without replacement inside an epoch; the order of an epoch is a function of seed and epoch number."""

    def __init__(self, prompts: Sequence[Prompt], seed: int) -> None:
        super().__init__(prompts)
        self._seed, self._drawn = seed, 0

    def next(self, count: int) -> list[Prompt]:
        size = len(self.prompts)
        positions = range(self._drawn, self._drawn + count)
        orders = {epoch: self._order(epoch) for epoch in {position // size for position in positions}}
        self._drawn += count
        return [self.prompts[orders[position // size][position % size]] for position in positions]

    def _order(self, epoch: int) -> list[int]:
        rng = np.random.default_rng(derive(self._seed, "uniform", epoch))
        return [int(i) for i in rng.permutation(len(self.prompts))]

    def state_dict(self) -> State:
        return {**super().state_dict(), "drawn": self._drawn}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._drawn = int(state["drawn"])
