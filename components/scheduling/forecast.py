"""Skip prompts whose group would most likely carry no gradient, and end groups that will most likely stay so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import betaln

from components.config.scheduling import ForecastSchedule
from components.scheduling.base import State
from components.scheduling.checks import Array, impossible, pack, pack_all, share, unpack, unpack_places
from components.scheduling.uniform import Walk
from components.types import Group, Prompt

KINDS = {"model_places": "i4", "model_right": "f8", "model_wrong": "f8", "model_at": "i4"}
NEVER = -1
PRIOR = 2.0
"""Observations that a prior is worth where nothing is known of how much prompts of a kind differ: uniform."""
STRENGTHS = (0.2, 50.0)
"""Least and largest strength of a prior that is estimated."""
KIND_MEMORY = 0.85
"""What is left after a draw of what was seen of a kind: it follows the policy."""
BETTER = 0.9
"""The quantile of the chances among the prompts considered that stands for what the better ones have."""
TINY = 1e-9


class SuccessModel:
    """Beta(a, b) of every prompt's success.

    What was seen of a prompt (``right`` and ``wrong`` completions ``[N]``) counts ``memory`` times as much with every
    draw that passes, so that an old measurement gives way to the prior. The prior is that of the prompt's kind: the
    mean success of its prompts in the latest draws, and as strong as they are alike (by the variance between prompts
    beyond that of sampling). A kind of which little was seen leans on all kinds together.
    """

    def __init__(self, kinds: Sequence[str], memory: float) -> None:
        names = {name: number for number, name in enumerate(dict.fromkeys(kinds))}
        self._kind: Array = np.array([names[name] for name in kinds], np.int32)
        self._memory = memory
        count = len(kinds)
        self.right: Array = np.zeros(count)
        self.wrong: Array = np.zeros(count)
        self.at: Array = np.full(count, NEVER, np.int32)
        # Of each kind: prompts, their success, its square, and the share of it that is chance; forgotten draw by draw.
        self._moments: Array = np.zeros((len(names), 4))

    def note(self, places: Array, right: Array, wrong: Array, draw: int) -> None:
        """Completions of draw number ``draw`` that were right and wrong; groups of one prompt are added up, and those
        with none count as unmeasured."""
        self._moments *= KIND_MEMORY
        known = right + wrong > 0
        places, group = np.unique(places[known], return_inverse=True)
        right, wrong = np.bincount(group, right[known]), np.bincount(group, wrong[known])
        kept = self._kept(places, draw)
        self.right[places], self.wrong[places] = self.right[places] * kept + right, self.wrong[places] * kept + wrong
        self.at[places] = draw
        count = right + wrong
        success = right / count
        np.add.at(
            self._moments, self._kind[places], np.stack([np.ones(len(places)), success, success**2, 1 / count], 1)
        )

    def posterior(self, places: Array, draw: int) -> tuple[Array, Array]:
        """``a`` and ``b`` of the ``places`` before draw number ``draw``."""
        mean, strength = self._priors()
        mean, strength = mean[self._kind[places]], strength[self._kind[places]]
        kept = self._kept(places, draw)
        return mean * strength + self.right[places] * kept, (1 - mean) * strength + self.wrong[places] * kept

    def _kept(self, places: Array, draw: int) -> Array:
        """What is left of what was seen of each place."""
        return np.where(self.at[places] == NEVER, 0.0, self._memory ** np.maximum(draw - self.at[places], 0))

    def _priors(self) -> tuple[Array, Array]:
        """Mean and strength of every kind's prior."""
        total = self._moments.sum(0)
        overall = (total[1] + PRIOR / 2) / (total[0] + PRIOR)
        mean = (self._moments[:, 1] + PRIOR * overall) / (self._moments[:, 0] + PRIOR)
        common = _alike(total[None])[0]
        own = _alike(self._moments + PRIOR * total / max(total[0], 1.0))
        strength = np.clip(np.where(np.isnan(own), common, own), *STRENGTHS)
        return mean, np.where(np.isnan(strength), PRIOR, strength)

    def state_dict(self) -> dict[str, str]:
        """As large as the prompts drawn are many, whatever the number of all."""
        places = np.flatnonzero(self.at != NEVER)
        packed = pack_all(KINDS, (places, self.right[places], self.wrong[places], self.at[places]))
        return {**packed, "model_kinds": pack(self._moments.ravel(), "f8")}

    def load_state_dict(self, state: Mapping[str, Any], draws: int) -> None:
        """Take over a state that was saved before draw number ``draws``.

        Raises:
            ValueError: places or values that cannot be.
        """
        places, right, wrong, at = unpack_places(state, KINDS, len(self.at))
        moments = unpack(state, "model_kinds", "f8")
        possible = all((np.isfinite(values) & (values >= 0)).all() for values in (right, wrong, at, moments))
        if not possible or moments.size != self._moments.size or not (at < max(draws, 1)).all():
            raise impossible([*KINDS, "model_kinds"])
        self.right[:], self.wrong[:], self.at[:] = 0, 0, NEVER
        self.right[places], self.wrong[places], self.at[places] = right, wrong, at
        self._moments = moments.reshape(self._moments.shape)


def mixed(a: Array, b: Array, count: int) -> Array:
    """Probability that ``count`` completions are neither all right nor all wrong, under Beta(a, b) success.

    1 - B(a + n, b) / B(a, b) - B(a, b + n) / B(a, b); 0.778 for n = 8 and a = b = 1.
    """
    whole = betaln(a, b)
    constant = np.exp(betaln(a + count, b) - whole) + np.exp(betaln(a, b + count) - whole)
    found: Array = np.clip(1 - constant, 0, 1)
    return found


def still_mixed(a: Array, b: Array, right: Array, wrong: Array, more: int) -> Array:
    """Probability that a group is mixed after ``more`` completions, given what it has; ``a``, ``b`` are from before."""
    a, b = a + right, b + wrong
    whole = betaln(a, b)
    stays_right = np.exp(betaln(a + more, b) - whole)
    stays_wrong = np.exp(betaln(a, b + more) - whole)
    chance = np.where(wrong == 0, 1 - stays_right, 1 - stays_wrong)
    found: Array = np.where((right > 0) & (wrong > 0), 1.0, np.where(right + wrong == 0, mixed(a, b, more), chance))
    return found


def _alike(moments: Array) -> Array:
    """a + b of a Beta whose draws have these moments ``[K, 4]``; NaN where fewer than two prompts were seen.

    The variance of measured success is m (1 - m) (1/n + rho (1 - 1/n)), and a + b is 1/rho - 1.
    """
    count = moments[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, chance = moments[:, 1] / count, moments[:, 3] / count
        variance = (moments[:, 2] / count - mean**2) * count / (count - 1)
        rho = (variance / (mean * (1 - mean)) - chance) / (1 - chance)
        found = 1 / np.clip(rho, 1 / (1 + STRENGTHS[1]), 1 / (1 + STRENGTHS[0])) - 1
    return np.where(count < 2, np.nan, found)


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
        self._model.load_state_dict(state, self._draws)


def _right(group: Group) -> float:
    """Completions that were right, partial accuracies added up. Where all have the same one below 1, none was: such a
    group carries no gradient, as one that is all wrong."""
    return sum(group.accuracies) if group.informative or 1.0 in group.accuracies else 0.0


def kind_of(prompt: Prompt) -> str:
    """What prompts have in common that are taken to be alike: cluster, family and difficulty."""
    return f"{prompt.cluster} {prompt.family} {prompt.difficulty:g}"
