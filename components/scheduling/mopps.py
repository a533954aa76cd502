"""MoPPS (2507.04632): prompts whose success, drawn from its posterior, lies nearest to a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from components.config.scheduling import MoppsSchedule
from components.scheduling.base import Schedule, State
from components.scheduling.checks import Array, misfit, pack_all, unpack_places, whole
from components.types import Group, Prompt

KINDS = {"beta_places": "i4", "beta_a": "f8", "beta_b": "f8"}


class Mopps(Schedule):
    """Beta(a, b) of each prompt: a group with s right makes a = ``memory`` a + (1 - memory) + s, b likewise.

    A draw takes those of a random choice of prompts (``candidates`` for each that is drawn) whose posterior draw is
    nearest to ``target``.
    """

    def __init__(self, prompts: Sequence[Prompt], settings: MoppsSchedule, seed: int) -> None:
        super().__init__(prompts, seed)
        self._settings, self._draws = settings, 0
        self._a: Array = np.ones(len(self.prompts))
        self._b: Array = np.ones(len(self.prompts))

    def next(self, count: int) -> list[Prompt]:
        if count > len(self.prompts):
            raise ValueError(f"{count} distinct prompts are needed, there are {len(self.prompts)}")
        rng = np.random.default_rng(self.stream("mopps", self._draws))
        size = min(self._settings.candidates * count, len(self.prompts))
        places = rng.choice(len(self.prompts), size, replace=False)
        away = np.abs(rng.beta(self._a[places], self._b[places]) - self._settings.target)
        chosen = places[np.argsort(away, kind="stable")[:count]]
        self._draws += 1
        # Shuffled, because dynamic sampling drops a surplus from the end.
        return [self.prompts[place] for place in rng.permutation(chosen)]

    def observe(self, groups: Sequence[Group]) -> None:
        super().observe(groups)
        memory = self._settings.memory
        for group in groups:
            place, accuracies = self._place[group.prompt.id], group.accuracies
            if accuracies:
                self._a[place] = memory * self._a[place] + (1 - memory) + sum(accuracies)
                self._b[place] = memory * self._b[place] + (1 - memory) + len(accuracies) - sum(accuracies)

    def state_dict(self) -> State:
        places = np.flatnonzero((self._a != 1) | (self._b != 1))
        packed = pack_all(KINDS, (places, self._a[places], self._b[places]))
        return {**super().state_dict(), "draws": self._draws, **packed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._draws = whole(state, "draws")
        places, a, b = unpack_places(state, KINDS, len(self.prompts))
        if not bool(((a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b)).all()):
            raise misfit("beta_a", state["beta_a"], "parameters above 0 of prompts")
        self._a[:], self._b[:] = 1, 1
        self._a[places], self._b[places] = a, b
