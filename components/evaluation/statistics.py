"""Means, intervals and shares."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its confidence interval."""

    mean: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Proportion:
    """``count`` of ``n``, with a confidence interval of the share."""

    count: int
    n: int
    rate: float
    low: float
    high: float


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
