"""Every prompt once an epoch, in an order that seed and epoch decide, but for those that are skipped by chance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from components.scheduling.base import Schedule, State
from components.scheduling.checks import Array, whole
from components.types import Prompt

CHUNK = 64
"""Prompts considered at a time at the least."""


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


class Walk(Uniform):
    """Visits the prompts in a seeded order and draws each with the probability that `admission` gives it.

    Where every prompt is admitted it draws what `Uniform` draws. A ``thin`` draw of n visits n prompts and holds those
    that are admitted, one at least. Another goes on until it has n: distinct ones as long as there are enough, and
    after a whole epoch in which too few were admitted, what comes.
    """

    def __init__(self, prompts: Sequence[Prompt], seed: int, *, thin: bool = False) -> None:
        super().__init__(prompts, seed)
        self._thin = thin
        self._draws, self._skipped = 0, 0

    @abstractmethod
    def admission(self, places: Array) -> Array:
        """The probability, above 0, with which each of ``places`` is drawn when it is visited."""

    def next(self, count: int) -> list[Prompt]:
        drawn = self._thinned(count) if self._thin else self._filled(count)
        self._draws += 1
        return [self.prompts[place] for place in drawn]

    def _thinned(self, count: int) -> list[int]:
        """Those of the next ``count`` places that are admitted."""
        places = self._upcoming(count)
        admission = self.admission(places)
        admitted = self._luck(count) < admission
        admitted[np.argmax(admission)] |= not admitted.any()
        self._drawn, self._skipped = self._drawn + count, self._skipped + int(np.count_nonzero(~admitted))
        found: list[int] = places[admitted].tolist()
        return found

    def _filled(self, count: int) -> list[int]:
        """The next ``count`` places that are admitted."""
        drawn: list[int] = []
        visited = 0
        while len(drawn) < count:
            chunk = self._upcoming(max(CHUNK, count - len(drawn)))
            admitted = self._luck(len(chunk)) < (1 if visited >= len(self.prompts) else self.admission(chunk))
            if visited < 2 * len(self.prompts):
                admitted &= ~np.isin(chunk, drawn) & _first(chunk)
            ends = np.flatnonzero(admitted)[: count - len(drawn)]
            used = len(chunk) if len(drawn) + len(ends) < count else int(ends[-1]) + 1
            drawn += chunk[ends].tolist()
            self._drawn, visited = self._drawn + used, visited + used
            self._skipped += used - len(ends)
        return drawn

    def _luck(self, count: int) -> Array:
        """A number in [0, 1) for each of the next ``count`` places."""
        return np.random.default_rng(self.stream("admission", self._drawn)).random(count)

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


def _first(values: Array) -> Array:
    """Whether each value has not occurred before, ``[N]``."""
    found = np.zeros(len(values), bool)
    found[np.unique(values, return_index=True)[1]] = True
    return found
