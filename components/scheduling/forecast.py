"""Skip prompts whose group would most likely carry no gradient, and end groups that will most likely stay so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from components.config.scheduling import ForecastSchedule
from components.scheduling.base import State
from components.scheduling.checks import share
from components.scheduling.packing import Array
from components.scheduling.success import FIELDS, SuccessModel, mixed, still_mixed
from components.scheduling.walk import Walk
from components.types import Group, Prompt

BETTER = 0.9
"""The quantile of the chances among the prompts considered that stands for what the better ones have."""
TINY = 1e-9


class Forecast(Walk):
    """Draws a prompt with a probability that follows its chance of a mixed group, by a `SuccessModel`.

    A prompt is drawn for sure where that chance is at least ``share`` of what the better prompts have, and never with
    less than ``explore``. Where all prompts have about the same chance nothing is skipped.
    """

    def __init__(
        self, prompts: Sequence[Prompt], settings: ForecastSchedule, size: int, seed: int, *, thin: bool = False
    ) -> None:
        super().__init__(prompts, seed, thin=thin)
        self._settings, self._size = settings, size
        self._model = SuccessModel([kind_of(prompt) for prompt in self.prompts], settings.memory)
        self._error = 0.0

    def admission(self, places: Array) -> Array:
        chance = mixed(*self._model.posterior(places, self._draws), self._size)
        enough = max(self._settings.share * float(np.quantile(chance, BETTER)), TINY)
        return np.clip(chance / enough, self._settings.explore, 1)

    def worthwhile(self, groups: Sequence[Group], size: int) -> list[bool]:
        places, right, wrong = self._counts(groups)
        a, b = self._model.posterior(places, self._draws - 1)
        chance = still_mixed(a, b, right, wrong, size - len(groups[0].completions)) if groups else np.zeros(0)
        return [bool(one >= self._settings.finish) for one in chance]

    def observe(self, groups: Sequence[Group]) -> None:
        super().observe(groups)
        places, right, wrong = self._counts(groups)
        draw = max(self._draws - 1, 0)
        self._error = self._missed(places, right, wrong, draw)
        self._model.note(places, right, wrong, draw)

    def _missed(self, places: Array, right: Array, wrong: Array, draw: int) -> float:
        """Brier score of the forecast that a group is mixed, over the groups that were completed; 0 without any."""
        whole = right + wrong == self._size
        if not whole.any():
            return 0.0
        forecast = mixed(*self._model.posterior(places[whole], draw), self._size)
        return float(np.mean((forecast - ((right > 0) & (wrong > 0))[whole]) ** 2))

    def metrics(self) -> dict[str, float]:
        return {**super().metrics(), "forecast_error": self._error}

    def _counts(self, groups: Sequence[Group]) -> tuple[Array, Array, Array]:
        """Place, completions that were right and those that were wrong, of every group ``[N]``."""
        rows = [(self._place[g.prompt.id], _right(g), len(g.accuracies)) for g in groups]
        places, right, scored = np.array(rows, np.float64).reshape(-1, 3).T
        return places.astype(np.int64), right, scored - right

    def state_dict(self) -> State:
        return {**super().state_dict(), **self._model.state_dict(), "error": self._error}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._error = share(state, "error")
        self._model.load_state_dict({name: state[name] for name in FIELDS}, self._draws)


def _right(group: Group) -> float:
    """Completions that were right, partial accuracies added up. Where all have the same one below 1, none was: such a
    group carries no gradient, as one that is all wrong."""
    return sum(group.accuracies) if group.informative or 1.0 in group.accuracies else 0.0


def kind_of(prompt: Prompt) -> str:
    """What prompts have in common that are taken to be alike: cluster, family and difficulty."""
    return f"{prompt.cluster} {prompt.family} {prompt.difficulty:g}"
