"""Adaptive Data Scheduling (2606.22305): draw clusters by success, train on the window at the policy's boundary, the
positions of a cluster's easy-to-hard order that are in play."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from components.config.scheduling import AdsSchedule
from components.errors import InputError
from components.scheduling.base import Schedule, State
from components.scheduling.checks import distribution, positions, share, shares, whole
from components.types import Group, Prompt

Move = Literal["adjacent", "outside"]
EASIER, STAY, HARDER = -1, 0, 1
INITIAL_SUCCESS = 0.5
NEVER_ZERO = 1e-12
"""Least floor of a probability, in units of 1/K: a draw without replacement needs enough clusters above 0."""


def direction(success: float, band: float) -> int:
    """Where a prompt's slot moves: too easy -> harder, too hard -> easier, near one half -> it stays."""
    if abs(success - 0.5) <= band:
        return STAY
    return HARDER if success > 0.5 else EASIER


def shift(window: Sequence[int], directions: Mapping[int, int], size: int, move: Move) -> list[int]:
    """The window after one visit, sorted.

    Args:
        window: distinct positions in ``[0, size)``.
        directions: position -> `EASIER`, `STAY` or `HARDER`; positions without an entry stay.
        size: number of positions in the cluster.
        move: ``adjacent`` goes one slot (the authors' code), ``outside`` to the nearest free position beyond the
            window (one slot where there is none).

    Stayers keep their slots; slots that become easier move first, in ascending order, then those that become harder,
    in descending order. A taken target gives the nearest free one, the wanted direction first.
    """
    if len(window) >= size:
        return sorted(window)
    moving = {step: sorted(p for p in window if directions.get(p, STAY) == step) for step in (EASIER, HARDER)}
    taken = {p for p in window if directions.get(p, STAY) == STAY}
    beyond = {EASIER: range(min(window) - 1, -1, -1), HARDER: range(max(window) + 1, size)}
    for step, slots in ((EASIER, moving[EASIER]), (HARDER, moving[HARDER][::-1])):
        reach = beyond[step] if move == "outside" else ()
        for position in slots:
            wanted = min(max(position + step, 0), size - 1)
            taken.add(next((p for p in reach if p not in taken), _nearest_free(wanted, step, taken, size)))
    return sorted(taken)


def _nearest_free(wanted: int, step: int, taken: set[int], size: int) -> int:
    for distance in range(size):
        for candidate in (wanted + step * distance, wanted - step * distance):
            if 0 <= candidate < size and candidate not in taken:
                return candidate
    raise AssertionError("a window smaller than its cluster always has a free slot")


class Ads(Schedule):
    """State per cluster k: success rate r_k, probability p_k, and the window M_k of positions in play.

    ``clusters`` maps a cluster's number to its prompts, easiest first (the clusters stage makes it). Clusters that
    are smaller than the window would give short draws, so the clusters stage merges them beforehand.
    """

    def __init__(self, clusters: Mapping[int, Sequence[Prompt]], settings: AdsSchedule, seed: int) -> None:
        super().__init__([prompt for key in sorted(clusters) for prompt in clusters[key]], seed)
        small = [key for key, members in clusters.items() if len(members) < settings.window]
        if small or len(clusters) < settings.active:
            raise InputError(
                f"ADS needs {settings.active} clusters of at least {settings.window} prompts, there are {len(clusters)}"
                + (f"; too small: {small}" if small else ""),
                where="schedule",
                how="give more training prompts, or lower schedule.window or schedule.active",
            )
        self._sizes = [len(clusters[key]) for key in sorted(clusters)]
        self._starts = [0, *accumulate(self._sizes)][:-1]
        self._settings, self._draws = settings, 0
        step = settings.active * settings.window
        automatic = len(self.prompts) // step
        self._epoch = automatic if settings.reset_draws == "auto" else settings.reset_draws
        self._in_band = 0.0
        self._reset()

    def _reset(self) -> None:
        count = len(self._sizes)
        self._success = [INITIAL_SUCCESS] * count
        self._probability = [1 / count] * count
        self._windows = [list(range(self._settings.window)) for _ in range(count)]

    def next(self, count: int) -> list[Prompt]:
        s = self._settings
        if count != s.active * s.window:
            raise ValueError(f"ADS draws {s.active} x {s.window} prompts at a time, not {count}")
        if self._epoch and self._draws and self._draws % self._epoch == 0:
            self._reset()
        rng = np.random.default_rng(self.stream("ads", self._draws))
        self._draws += 1
        drawn = rng.choice(len(self._sizes), size=s.active, replace=False, p=self._probability)
        return [self.prompts[self._starts[k] + rank] for k in sorted(drawn.tolist()) for rank in self._windows[k]]

    def observe(self, groups: Sequence[Group]) -> None:
        super().observe(groups)
        visits: dict[int, dict[int, float]] = {}
        for group in groups:
            if group.mean_accuracy is not None:
                place = self._place[group.prompt.id]
                cluster = bisect_right(self._starts, place) - 1
                visits.setdefault(cluster, {})[place - self._starts[cluster]] = group.mean_accuracy
        moves: list[int] = []
        for cluster, outcomes in visits.items():
            self._success[cluster] = sum(outcomes.values()) / len(outcomes)
            directions = {position: direction(rate, self._settings.band) for position, rate in outcomes.items()}
            moves += directions.values()
            size, move = self._sizes[cluster], self._settings.move
            self._windows[cluster] = shift(self._windows[cluster], directions, size, move)
        self._in_band = moves.count(STAY) / len(moves) if moves else 0.0
        self._follow_success()

    def _follow_success(self) -> None:
        """p <- (1 - alpha) p + alpha w / sum(w), with an optional floor (`raised`); w is r, or r(1 - r)."""
        s = self._settings
        weights = [r * (1 - r) if s.weight == "boundary" else r for r in self._success]
        total, count = sum(weights), len(weights)
        target = [w / total for w in weights] if total else [1 / count] * count
        mixed = [(1 - s.alpha) * p + s.alpha * t for p, t in zip(self._probability, target, strict=True)]
        self._probability = raised(mixed, max(s.min_prob, NEVER_ZERO) / count)

    def metrics(self) -> dict[str, float]:
        reached = [(max(window) + 1) / size for window, size in zip(self._windows, self._sizes, strict=True)]
        return {**super().metrics(), "in_band": self._in_band, "reached": sum(reached) / len(reached)}

    def state_dict(self) -> State:
        return {
            **super().state_dict(),
            "sizes": list(self._sizes),
            "draws": self._draws,
            "success": list(self._success),
            "probability": list(self._probability),
            "windows": [list(window) for window in self._windows],
            "in_band": self._in_band,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        if state["sizes"] != self._sizes:
            raise ValueError(f"state does not fit: clusters of {state['sizes']} prompts, the data has {self._sizes}")
        count = len(self._sizes)
        self._draws, self._in_band = whole(state, "draws"), share(state, "in_band")
        self._success, self._probability = shares(state, "success", count), distribution(state, "probability", count)
        self._windows = positions(state, "windows", self._sizes, self._settings.window)


def raised(shares: Sequence[float], floor: float) -> list[float]:
    """``shares``, which add up to 1, with none below ``floor`` (less than 1 / their number).

    What those below it lack is taken from the others, in proportion to what they have above it; shares that all reach
    the floor stay as they are.
    """
    if min(shares) >= floor:
        return list(shares)
    above = [max(share - floor, 0.0) for share in shares]
    scale = (1 - len(shares) * floor) / sum(above)
    return [floor + scale * part for part in above]
