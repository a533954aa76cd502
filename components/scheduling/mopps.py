"""MoPPS (2507.04632): prompts whose success, drawn from its posterior, lies nearest to a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from components.config.scheduling import MoppsSchedule
from components.scheduling.base import Schedule, State
from components.scheduling.checks import misfit, whole
from components.scheduling.packing import Array, pack, unpack
from components.types import Group, Prompt


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
        arrays = {"beta_places": places, "beta_a": self._a[places], "beta_b": self._b[places]}
        packed = {name: pack(values, "i4" if name == "beta_places" else "f8") for name, values in arrays.items()}
        return {**super().state_dict(), "draws": self._draws, **packed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._draws = whole(state, "draws")
        places, a, b = (
            unpack(state, f"beta_{name}", kind) for name, kind in (("places", "i4"), ("a", "f8"), ("b", "f8"))
        )
        fits = len(places) == len(a) == len(b) and bool(((places >= 0) & (places < len(self.prompts))).all())
        if not fits or not bool(((a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b)).all()):
            raise misfit("beta_a", state["beta_a"], "parameters above 0 of prompts")
        self._a[:], self._b[:] = 1, 1
        self._a[places], self._b[places] = a, b
