"""Two policies on the same prompts.

The prompts are the units: samples of one prompt are not independent of each other, and pairing removes the variance
that comes from prompts being easy or hard (2411.00640).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from math import comb
from statistics import NormalDist, stdev
from typing import Any

import numpy as np

from components.config.evaluation import EvaluationSettings
from components.evaluation.results import PromptResult
from components.evaluation.statistics import Interval

CONFIDENCE, POWER = 0.95, 0.8
ROUNDING = 1e-9
"""Gains that differ by less are the same one."""
Pairs = Sequence[tuple[float | None, float | None]]
Gain = dict[str, Any] | None


def paired_gain(
    before: Sequence[float], after: Sequence[float], resamples: int, seed: int, confidence: float = CONFIDENCE
) -> Interval:
    """Mean of after - before over prompts, with a percentile bootstrap interval that resamples the prompts.

    Both are accuracies, in [0, 1]. Prompts that all changed alike have no spread to resample, and do not make certain
    what the next prompt does: see `unseen`.

    Raises:
        ValueError: the sequences are empty or of different length.
    """
    if len(before) != len(after) or not before:
        raise ValueError(f"cannot pair {len(before)} prompts with {len(after)}")
    gains = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    if alike(gains.tolist()):
        mean, other = float(gains.mean()), unseen(len(gains), confidence)
        return Interval(mean, mean - other * (1 + mean), mean + other * (1 - mean), confidence)
    stream = np.random.default_rng(seed)
    means = [gains[stream.integers(0, len(gains), len(gains))].mean() for _ in range(resamples)]
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(gains.mean()), float(low), float(high), confidence)


def alike(gains: Sequence[float]) -> bool:
    """All are the same, but for rounding."""
    return max(gains) - min(gains) < ROUNDING


def unseen(n: int, confidence: float = CONFIDENCE) -> float:
    """The largest share of prompts that may change otherwise although ``n`` all changed alike (Clopper-Pearson).

    The lower end of the gain is where they all go from right to wrong, the upper end where they all go the other way.
    Of 2 prompts it is 84 %, of 30 it is 12 %, of 100 it is 3.6 %.
    """
    return 1 - float(((1 - confidence) / 2) ** (1 / n))


def mcnemar(before: Sequence[bool], after: Sequence[bool]) -> float:
    """Two-sided exact McNemar test: the probability of so uneven a split of the prompts whose verdict changed.

    Raises:
        ValueError: the sequences are of different length.
    """
    gained, lost = discordant(before, after)
    changed = gained + lost
    # scipy.stats.binomtest finds the same, and takes a second to import
    tail: float = sum(comb(changed, i) for i in range(min(gained, lost) + 1)) / 2**changed
    return min(1.0, 2 * tail)


def discordant(before: Sequence[bool], after: Sequence[bool]) -> tuple[int, int]:
    """Prompts that are right only after, and only before."""
    pairs = list(zip(before, after, strict=True))
    return sum(new and not old for old, new in pairs), sum(old and not new for old, new in pairs)


def detectable(gains: Sequence[float], confidence: float = CONFIDENCE, power: float = POWER) -> float | None:
    """The smallest true mean difference that a paired z-test on so many prompts finds with this power.

    (z_{1-a/2} + z_power) sd / sqrt(n), with the standard deviation that was observed (2411.00640, section 5). None with
    fewer than two prompts, or where all changed alike: then nothing is known of the spread.
    """
    if len(gains) < 2 or alike(gains):
        return None
    quantiles = NormalDist().inv_cdf(0.5 + confidence / 2) + NormalDist().inv_cdf(power)
    return quantiles * stdev(gains) / math.sqrt(len(gains))


def detectable_by_mcnemar(n: int, changed: int, confidence: float = CONFIDENCE, power: float = POWER) -> float | None:
    """The smallest difference of two shares that McNemar's test finds with this power, if ``changed`` of ``n`` do.

    The d that solves n d^2 = (z_{1-a/2} sqrt(p) + z_power sqrt(p - d^2))^2 with p = changed / n (Connor 1987,
    Biometrics 43, 207). None where not even all changes in one direction would be enough.
    """
    if not changed:
        return None
    p = changed / n
    alpha, beta = NormalDist().inv_cdf(0.5 + confidence / 2), NormalDist().inv_cdf(power)

    def short(d: float) -> float:
        return alpha * math.sqrt(p) + beta * math.sqrt(max(0.0, p - d * d)) - d * math.sqrt(n)

    low, high = 0.0, p
    if short(high) > 0:
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if short(middle) > 0 else (low, middle)
    return high


def sampled_gain(
    before: Sequence[PromptResult], after: Sequence[PromptResult], settings: EvaluationSettings, seed: int
) -> Gain:
    """In sampled pass@1; None where no prompt was scorable under both."""
    pairs = zip(before, after, strict=True)
    return _gain([(old.pass_at_1, new.pass_at_1) for old, new in pairs], settings, seed)


def gains(
    before: Sequence[PromptResult], after: Sequence[PromptResult], settings: EvaluationSettings, seed: int
) -> tuple[Gain, Gain]:
    """Sampled and greedy; None where no prompt was scorable under both. One over fewer prompts than the settings call
    small is called ``small``: resampling so few makes too narrow an interval.

    Raises:
        ValueError: the two sides are not the same prompts in the same order.
    """
    if [result.id for result in before] != [result.id for result in after]:
        raise ValueError("before and after must be the same prompts in the same order")
    greedy = [(old.greedy, new.greedy) for old, new in zip(before, after, strict=True)]
    return sampled_gain(before, after, settings, seed), _greedy_gain(greedy, settings, seed)


def _gain(pairs: Pairs, settings: EvaluationSettings, seed: int) -> Gain:
    known = [(old, new) for old, new in pairs if old is not None and new is not None]
    if not known:
        return None
    old, new = zip(*known, strict=True)
    return {
        **asdict(paired_gain(old, new, settings.bootstrap, seed)),
        "n": len(known),
        "small": len(known) < settings.small,
        "power": POWER,
        "detectable": detectable([b - a for a, b in known]),
    }


def _greedy_gain(pairs: Pairs, settings: EvaluationSettings, seed: int) -> Gain:
    gain = _gain(pairs, settings, seed)
    if gain is None:
        return None
    known = [(old == 1, new == 1) for old, new in pairs if old is not None and new is not None]
    old, new = [one for one, _ in known], [one for _, one in known]
    gained, lost = discordant(old, new)
    return {
        **gain,
        "gained": gained,
        "lost": lost,
        "mcnemar_p": mcnemar(old, new),
        "detectable": detectable_by_mcnemar(len(known), gained + lost),
    }
