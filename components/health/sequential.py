"""Tests of counts that may be looked at after every step (e-detectors, arXiv 2203.03532; betting, 2010.09686).

A fixed threshold has no error rate when it is compared again at every step. These have: while the share of right
answers is at least ``null``, evidence of ``log(n)`` nats is reached once in ``n`` measurements on average, or less
often. Answers need not have one probability: those of a fixed set of prompts are independent, and only their mean
counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

BETS = (0.1, 0.2, 0.4, 0.8)
"""Shares of the largest bet; the mean of their evidence is evidence too. Small ones find small falls, late."""


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
