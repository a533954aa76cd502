"""Tests of counts that may be looked at after every step (e-detectors, arXiv 2203.03532; betting, 2010.09686).

A fixed threshold has no error rate when it is compared again at every step. These have: while the share of right
answers is at least ``null``, evidence of ``log(n)`` nats is reached once in ``n`` measurements on average, or less
often. Answers need not have one probability: those of a fixed set of prompts are independent, and only their mean
counts.

`Draws` and `Signs` bet on a sound run: completions of one prompt are drawn independently, and updates do what they are
made for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from components.types import Group

BETS = (0.1, 0.2, 0.4, 0.8)
"""Shares of the largest bet; the mean of their evidence is evidence too. Small ones find small falls, late."""
RAREST = 1e-6
"""Probabilities below it are taken for it: a log-probability that is off must not prove everything by itself."""
PROVEN = 9.2
"""Nats; while completions are drawn independently they are reached once in 10,000 steps, or less often."""
USUAL = 0.8
"""Share of the updates of a sound run, at least, that raise what had positive advantages above what had negative."""
Key = TypeVar("Key", int, str)


class Count(NamedTuple):
    """Right answers, of how many."""

    right: int
    of: int

    @property
    def share(self) -> float:
        return self.right / self.of

    def __add__(self, other: object) -> Count:
        if not isinstance(other, Count):
            return NotImplemented
        return Count(self.right + other.right, self.of + other.of)


def lower_bound(count: Count, nats: float) -> float:
    """The share that the true one is below with a probability of at most ``exp(-nats)`` (Chernoff)."""
    low, high = 0.0, count.share
    for _ in range(26):
        middle = (low + high) / 2
        low, high = (middle, high) if count.of * divergence(count.share, middle) > nats else (low, middle)
    return low


def divergence(share: float, other: float) -> float:
    """KL divergence of two coins, nats; infinite where the other cannot show what was seen."""
    parts = ((share, other), (1 - share, 1 - other))
    if any(p > 0 and q <= 0 for p, q in parts):
        return math.inf
    return sum(p * math.log(p / q) for p, q in parts if p > 0)


def fell(before: Count, after: Count) -> float:
    """Evidence, nats, that the share of ``after`` is below that of ``before``; 0 where it is not. Once, not every step:
    with equal shares ``x`` nats are exceeded with a probability of about ``exp(-x)``."""
    if after.share >= before.share:
        return 0.0
    both = (before + after).share
    return before.of * divergence(before.share, both) + after.of * divergence(after.share, both)


def bet(count: Count, null: float) -> list[float]:
    """Log of the factor by which each of `BETS` against "the share is at least ``null``", below 1, multiplies its
    stake: 1 + l (null - x) for each answer, l at most 1 / (1 - null)."""
    odds, wrong = null / (1 - null), count.of - count.right
    return [count.right * math.log(1 - share) + wrong * math.log1p(share * odds) for share in BETS]


def detect(before: Sequence[float], count: Count, null: float) -> list[float]:
    """The stakes (logs) after one more measurement: each begins again at 1 where it has lost (CUSUM)."""
    return [max(stake, 0.0) + factor for stake, factor in zip(before, bet(count, null), strict=True)]


def evidence(stakes: Sequence[float]) -> float:
    """Log of the mean of the stakes, which are logs."""
    top = max(stakes)
    return top + math.log(sum(math.exp(stake - top) for stake in stakes) / len(stakes))


class Bets(Generic[Key]):
    """The stakes by key; ``none`` stands for a key where there is none."""

    def __init__(self, none: Key) -> None:
        self._none: Key = none
        self._stakes: dict[Key, list[float]] = {}

    @property
    def worst(self) -> Key:
        """The key with the most evidence."""
        return max(self._stakes, key=lambda key: evidence(self._stakes[key]), default=self._none)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {str(key): list(stakes) for key, stakes in self._stakes.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self._stakes = {type(self._none)(key): list(map(float, stakes)) for key, stakes in state.items()}


class Draws(Bets[int]):
    """On "completions are drawn independently", by server; -1 stands for completions that no server sampled.

    The first completion of a group has, by the sampler's own log-probabilities, a probability p. Each other one equals
    it with a probability of p, so copies that a cache, a stuck seed or a broken server returns are evidence, whatever
    the policy has become.
    """

    def __init__(self) -> None:
        super().__init__(-1)

    def observe(self, groups: Sequence[Group]) -> dict[int, float]:
        """Evidence, nats, by server, that completions repeat more often than they should."""
        factors: dict[int, list[float]] = {}
        for group in groups:
            for server, count, null in _counts(group):
                before = factors.setdefault(server, [0.0] * len(BETS))
                factors[server] = [one + more for one, more in zip(before, bet(count, null), strict=True)]
        for server, found in factors.items():
            old = self._stakes.get(server, [0.0] * len(BETS))
            self._stakes[server] = [max(stake, 0.0) + factor for stake, factor in zip(old, found, strict=True)]
        shared = math.log(max(1, len(self._stakes)))
        return {server: evidence(stakes) - shared for server, stakes in self._stakes.items()}

    def forget(self, server: int) -> None:
        """A server samples no more."""
        self._stakes.pop(server, None)


def _counts(group: Group) -> list[tuple[int, Count, float]]:
    """By server: how many of its completions of this prompt differ from its first, and the share that should."""
    found = []
    for server in sorted({completion.server for completion in group.completions}):
        first, *others = [completion for completion in group.completions if completion.server == server]
        usual = math.exp(min(0.0, sum(first.logprobs))) if all(map(math.isfinite, first.logprobs)) else 1.0
        if others and usual < 1 - RAREST:
            differ = sum(other.token_ids != first.token_ids for other in others)
            found.append((server, Count(differ, len(others)), 1 - max(RAREST, usual)))
    return found


class Signs(Bets[str]):
    """On "at least `USUAL` of the updates raise what had positive advantages", by family."""

    def __init__(self) -> None:
        super().__init__("")

    def observe(self, raised: Mapping[str, bool]) -> float | None:
        """Evidence, nats, that the updates of some family do not; None where nothing was looked at."""
        for family, right in raised.items():
            before = self._stakes.get(family, [0.0] * len(BETS))
            self._stakes[family] = detect(before, Count(int(right), 1), USUAL)
        if not raised:
            return None
        return max(map(evidence, self._stakes.values())) - math.log(len(self._stakes))
