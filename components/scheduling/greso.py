"""GRESO (2506.02177): a prompt is skipped the more surely the more often in a row its group had no variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from components.config.scheduling import GresoSchedule
from components.scheduling.base import State
from components.scheduling.checks import Array, pack_all, share, unpack_places
from components.scheduling.uniform import Walk
from components.types import Group, Prompt

KINDS = {"streak_places": "i4", "streaks": "i4"}


class Greso(Walk):
    """A prompt whose last z groups were all right is drawn with probability ``p_easy ** z``, all wrong ``p_hard ** z``.

    Both follow a target: where the share of groups all right (all wrong) in a draw is above its target, p falls by
    ``move``, else it rises.
    """

    def __init__(self, prompts: Sequence[Prompt], settings: GresoSchedule, seed: int, *, thin: bool = False) -> None:
        super().__init__(prompts, seed, thin=thin)
        self._settings = settings
        self._streak: Array = np.zeros(len(self.prompts), np.int32)  # of groups all right; below 0: all wrong
        self._easy = self._hard = settings.explore

    def admission(self, places: Array) -> Array:
        streak = self._streak[places].astype(np.float64)
        found: Array = np.where(streak > 0, self._easy, self._hard) ** np.abs(streak)
        return np.maximum(found, self._settings.least)

    def observe(self, groups: Sequence[Group]) -> None:
        super().observe(groups)
        scored = [group for group in groups if group.accuracies]
        right = [not group.informative and group.accuracies[0] == 1 for group in scored]
        wrong = [not group.informative and group.accuracies[0] < 1 for group in scored]
        for group, all_right, all_wrong in zip(scored, right, wrong, strict=True):
            place = self._place[group.prompt.id]
            streak = int(self._streak[place])
            self._streak[place] = max(streak, 0) + 1 if all_right else min(streak, 0) - 1 if all_wrong else 0
        if scored:
            self._easy = self._moved(self._easy, sum(right) / len(scored), self._settings.easy)
            self._hard = self._moved(self._hard, sum(wrong) / len(scored), self._settings.hard)

    def _moved(self, value: float, found: float, target: float) -> float:
        return float(np.clip(value + (-self._settings.move if found > target else self._settings.move), 0, 1))

    def state_dict(self) -> State:
        places = np.flatnonzero(self._streak)
        own = pack_all(KINDS, (places, self._streak[places]))
        return {**super().state_dict(), **own, "explore_easy": self._easy, "explore_hard": self._hard}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        places, streaks = unpack_places(state, KINDS, len(self.prompts))
        self._streak[:] = 0
        self._streak[places] = streaks
        self._easy, self._hard = share(state, "explore_easy"), share(state, "explore_hard")
