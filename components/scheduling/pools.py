"""Prompts in pools by measured success, a share of every draw for each pool, and a gate in front of all of them.

A group whose completions are all right or all wrong has no advantage and teaches nothing (2503.14476). Dynamic sampling
finds that out by sampling it; a gate by remembering.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from components.config.scheduling import GradientGate, PoolsSchedule
from components.scheduling.base import Schedule, State
from components.scheduling.checks import Array, Marks, impossible, pack_all, share, unpack_places, whole
from components.types import Group, Prompt

POOLS = ("unseen", "normal", "hard", "easy")
"""In the order in which they fill up what another pool lacks."""
UNSEEN, NORMAL, HARD, EASY = range(4)
GOLDEN = (5**0.5 - 1) / 2
KINDS = {"measured": "i4", "success": "f8", "measured_at": "i4"}
NEVER = -1
Gate = Callable[[Array, Array], Marks]
"""Success of M prompts when last drawn, and how many draws ago that was (1: the last one) -> who is let in, ``[M]``.

Success is NaN where nothing could be scored.
"""


def gradient(settings: GradientGate) -> Gate:
    """Closed to prompts that carried no gradient, for ``retry`` draws: the policy has moved on by then.

    Those that could not be scored carried none either.

    One that carried a gradient sits out ``rest`` draws, so that the refill of a step does not take it again under the
    same policy.
    """

    def admits(success: Array, waited: Array) -> Marks:
        carried = (success > settings.low) & (success < settings.high)
        return (waited > settings.retry) | (carried & (waited > settings.rest))

    return admits


def everyone(_settings: object) -> Gate:
    """Open to all."""
    return lambda success, _waited: np.ones(len(success), bool)


GATES: dict[str, Callable[[Any], Gate]] = {"gradient": gradient, "open": everyone}
"""``schedule.gate.kind`` -> its builder, which takes that section. A prompt that was never drawn is always admitted."""


class Measured:
    """Last success ``success [N]`` in [0, 1] and the draw ``at [N]`` that measured it.

    Success is NaN where the last draw could not be scored, and where there was none; there ``at`` is `NEVER`.
    """

    def __init__(self, count: int) -> None:
        self.success: Array = np.full(count, np.nan, np.float64)
        self.at: Array = np.full(count, NEVER, np.int32)

    def note(self, outcomes: Mapping[int, float | None], draw: int) -> None:
        """Place of a prompt -> its success in draw number ``draw``; None: it could not be scored."""
        places = list(outcomes)
        self.success[places] = [np.nan if success is None else success for success in outcomes.values()]
        self.at[places] = draw

    def state_dict(self) -> dict[str, str]:
        """As large as the prompts drawn are many, whatever the number of all."""
        places = np.flatnonzero(self.at != NEVER)
        return pack_all(KINDS, (places, self.success[places], self.at[places]))

    def load_state_dict(self, state: Mapping[str, Any], draws: int) -> None:
        """Take over a state that was saved before draw number ``draws``.

        Raises:
            ValueError: places or values that cannot be.
        """
        places, success, at = unpack_places(state, KINDS, len(self.success))
        shares = ((success >= 0) & (success <= 1)) | np.isnan(success)
        if not (shares & (at >= 0) & (at < max(draws, 1))).all():
            raise impossible(KINDS)
        self.success[:], self.at[:] = np.nan, NEVER
        self.success[places], self.at[places] = success, at


class DifficultyPools(Schedule):
    """A prompt's pool follows from its success when last drawn, so it changes pools as the policy learns.

    What is known of every prompt is its whole state; the random numbers of a draw come from its number.
    """

    def __init__(self, prompts: Sequence[Prompt], settings: PoolsSchedule, seed: int) -> None:
        super().__init__(prompts, seed)
        self._settings, self._draws = settings, 0
        self._gate = GATES[settings.gate.kind](settings.gate)
        self._measured = Measured(len(self.prompts))
        self._pools = self._pool_of(self._measured.success, self._measured.at)
        self._in_band = self._closed = 0.0

    def next(self, count: int) -> list[Prompt]:
        if count > len(self.prompts):
            raise ValueError(f"{count} distinct prompts are needed, there are {len(self.prompts)}")
        rng = np.random.default_rng(self.stream("pools", self._draws))
        members = [np.flatnonzero(self._pools == pool) for pool in range(len(POOLS))]
        admitted = [members[UNSEEN], *map(self._admitted, members[1:])]
        shares = [getattr(self._settings.shares, name) for name in POOLS]
        takes = allot([len(places) for places in admitted], shares, count, self._draws)
        drawn = [
            places[rng.choice(len(places), take, replace=False)] for places, take in zip(admitted, takes, strict=True)
        ]
        if sum(takes) < count:
            closed = np.setdiff1d(np.concatenate(members), np.concatenate(admitted), assume_unique=True)
            drawn.append(longest_waiting(closed, self._measured.at[closed], count - sum(takes), rng))
        self._closed = 1 - sum(map(len, admitted)) / len(self.prompts)
        self._draws += 1
        # Shuffled, because dynamic sampling drops a surplus from the end.
        return [self.prompts[place] for place in rng.permutation(np.concatenate(drawn))]

    def _admitted(self, places: Array) -> Array:
        """Those of the ``places``, drawn before, that the gate lets in."""
        return places[self._gate(self._measured.success[places], self._draws - self._measured.at[places])]

    def observe(self, groups: Sequence[Group]) -> None:
        super().observe(groups)
        outcomes = {self._place[g.prompt.id]: g.mean_accuracy for g in groups}
        self._measured.note(outcomes, max(self._draws - 1, 0))
        places = list(outcomes)
        self._pools[places] = self._pool_of(self._measured.success[places], self._measured.at[places])
        scored = [place for place, success in outcomes.items() if success is not None]
        self._in_band = float(np.mean(self._pools[scored] == NORMAL)) if scored else 0.0

    def _pool_of(self, success: Array, at: Array) -> Array:
        """What could not be scored is hard: if it stayed unseen, it would be drawn as unknown again and again."""
        pools = np.full(len(success), NORMAL, np.int8)
        pools[success >= self._settings.easy] = EASY
        pools[np.isnan(success) | (success <= self._settings.hard)] = HARD
        pools[at == NEVER] = UNSEEN
        return pools

    def metrics(self) -> dict[str, float]:
        sizes = {POOLS[pool]: np.count_nonzero(self._pools == pool) for pool in (NORMAL, HARD, EASY)}
        shares = {f"pool_{name}": float(size) / len(self.prompts) for name, size in sizes.items()}
        return {**super().metrics(), "in_band": self._in_band, "closed": self._closed, **shares}

    def state_dict(self) -> State:
        own = {"draws": self._draws, "in_band": self._in_band, "closed": self._closed}
        return {**super().state_dict(), **own, **self._measured.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._draws = whole(state, "draws")
        self._in_band, self._closed = share(state, "in_band"), share(state, "closed")
        self._measured.load_state_dict(state, self._draws)
        self._pools = self._pool_of(self._measured.success, self._measured.at)


def allot(sizes: Sequence[int], shares: Sequence[float], count: int, draw: int) -> list[int]:
    """How many of ``count`` each pool gives in draw number ``draw``, at most its size.

    Shares are rounded up or down, in turn, so that over the draws every pool gives its share however few a draw takes:
    the shares lie end to end on a line, and each gives the whole numbers that it covers; the line starts elsewhere at
    every draw. What a pool lacks is given by the others, the first ones first; less than ``count`` in all where the
    pools together hold less.
    """
    start = (draw + 1) * GOLDEN % 1  # spreads evenly over [0, 1), after any number of draws
    ends = [min(int(start + share * count + 1e-9), count) for share in accumulate(shares)][:-1]
    takes = [end - begin for begin, end in pairwise([0, *ends, count])]
    takes = [min(take, size) for take, size in zip(takes, sizes, strict=True)]
    for pool, size in enumerate(sizes):
        takes[pool] += min(size - takes[pool], count - sum(takes))
    return takes


def longest_waiting(places: Array, at: Array, count: int, rng: np.random.Generator) -> Array:
    """The ``count`` of ``places`` whose draws ``at`` are the earliest; chance decides between equals."""
    latest = np.partition(at, count - 1)[count - 1]
    before, tied = places[at < latest], places[at == latest]
    return np.concatenate([before, rng.choice(tied, count - len(before), replace=False)])
