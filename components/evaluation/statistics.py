"""Estimators and paired tests over prompts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import comb

import numpy as np


def pass_at_k(samples: int, right: int, k: int) -> float:
    """Unbiased estimate of P(at least one of k samples is right) from ``right`` of ``samples`` (2107.03374).

    Raises:
        ValueError: fewer than k samples, or more right ones than samples.
    """
    if not 1 <= k <= samples or not 0 <= right <= samples:
        raise ValueError(f"pass@{k} is undefined for {right} right of {samples} samples")
    return 1 - comb(samples - right, k) / comb(samples, k)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its confidence interval."""

    mean: float
    low: float
    high: float
    confidence: float

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


def paired_gain(
    before: Sequence[float], after: Sequence[float], resamples: int, seed: int, confidence: float = 0.95
) -> Interval:
    """Mean of after - before over prompts, with a percentile bootstrap interval that resamples the prompts.

    The prompts are the units: samples of one prompt are not independent of each other, and pairing removes the
    variance that comes from prompts being easy or hard.

    Raises:
        ValueError: the sequences are empty or of different length.
    """
    if len(before) != len(after) or not before:
        raise ValueError(f"cannot pair {len(before)} prompts with {len(after)}")
    gains = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    stream = np.random.default_rng(seed)
    means = [gains[stream.integers(0, len(gains), len(gains))].mean() for _ in range(resamples)]
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(gains.mean()), float(low), float(high), confidence)


@dataclass(frozen=True, slots=True)
class Proportion:
    """``count`` of ``n``, with a confidence interval of the share."""

    count: int
    n: int
    rate: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


def wilson(count: int, n: int, z: float = 1.959964) -> Proportion:
    """Wilson's score interval of a share, 95 % by default. Of nothing, nothing is known: 0 to 1.

    Raises:
        ValueError: ``count`` is not between 0 and ``n``.
    """
    if not 0 <= count <= n:
        raise ValueError(f"{count} of {n} is no share")
    if n == 0:
        return Proportion(0, 0, 0.0, 0.0, 1.0)
    rate, scale = count / n, 1 + z**2 / n
    centre = (rate + z**2 / (2 * n)) / scale
    half = z * math.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2)) / scale
    low = 0.0 if count == 0 else max(0.0, centre - half)
    high = 1.0 if count == n else min(1.0, centre + half)
    return Proportion(count, n, rate, low, high)


def mcnemar(before: Sequence[bool], after: Sequence[bool]) -> float:
    """Two-sided exact McNemar test: the probability of so uneven a split of the prompts whose verdict changed.

    Raises:
        ValueError: the sequences are of different length.
    """
    pairs = list(zip(before, after, strict=True))
    gained = sum(new and not old for old, new in pairs)
    lost = sum(old and not new for old, new in pairs)
    changed = gained + lost
    tail: float = sum(comb(changed, i) for i in range(min(gained, lost) + 1)) / 2**changed
    return min(1.0, 2 * tail)
