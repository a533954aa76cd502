"""Which rows a step trains on: every row once an epoch, in an order that the seed decides."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from components.seeds import derive


class Epochs:
    """Batches of row numbers, as a function of seed and step alone: nothing to save for a resumption."""

    def __init__(self, rows: int, batch_size: int, seed: int, purpose: str) -> None:
        self._rows, self._batch_size, self._seed, self._purpose = rows, batch_size, seed, purpose

    def batch(self, step: int) -> list[int]:
        """Row numbers of a step: consecutive slices of one permutation per epoch."""
        start = step * self._batch_size
        positions = range(start, start + self._batch_size)
        return [self._order(position // self._rows)[position % self._rows] for position in positions]

    @lru_cache(maxsize=2)  # noqa: B019 - two epochs of one trainer, dropped with it
    def _order(self, epoch: int) -> list[int]:
        order = np.random.default_rng(derive(self._seed, self._purpose, epoch)).permutation(self._rows)
        return [int(i) for i in order]
