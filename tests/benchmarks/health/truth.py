"""What healthy runs reach, and from which step a run with a fault stays below it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from tests.benchmarks.health.store import Run

DEVIATIONS = 2.0
LEAST_DEVIATION = 0.02
"""Sampling alone scatters the accuracy of 128 completions by about this much."""
LEAST_POINTS = 2
"""Measurements that must be low: one alone, the last, is low by chance in one healthy run of forty."""
RESCUED = 0.95


@dataclass(frozen=True)
class Norm:
    """Held-out accuracy of healthy runs: the mean by SFT seed and step, the standard deviation by step.

    The deviation is that from the mean of a run's own SFT seed, pooled over these.
    """

    means: dict[tuple[int, int], float]
    deviations: dict[int, float]
    finals: dict[int, float]

    def low(self, sft_seed: int, step: int, value: float) -> bool:
        """Is this accuracy more than `DEVIATIONS` below the mean?"""
        return value < self.means[sft_seed, step] - DEVIATIONS * self.deviations[step]


def norm_of(healthy: Sequence[Run]) -> Norm:
    """The norm of runs of one condition; two of every SFT seed at least."""
    values: dict[tuple[int, int], list[float]] = defaultdict(list)
    finals: dict[int, list[float]] = defaultdict(list)
    for run in healthy:
        finals[run.sft_seed].append(run.final)
        for step, value in run.held_out:
            values[run.sft_seed, step].append(value)
    means = {key: fmean(found) for key, found in values.items()}
    steps = sorted({step for _, step in values})
    return Norm(
        means,
        {
            step: max(LEAST_DEVIATION, _pooled([found for key, found in values.items() if key[1] == step]))
            for step in steps
        },
        {sft_seed: fmean(found) for sft_seed, found in finals.items()},
    )


def _pooled(samples: Sequence[Sequence[float]]) -> float:
    """Standard deviation about the samples' own means."""
    squares = sum(sum((value - fmean(sample)) ** 2 for value in sample) for sample in samples)
    free = sum(len(sample) - 1 for sample in samples)
    return sqrt(squares / free) if free else 0.0


def hurt(run: Run, norm: Norm) -> int | None:
    """The first step, from the beginning of the fault on, from which every measurement is low; None: it never hurts.

    A run that crashed has no policy to measure, and counts as hurt where it ended.
    """
    points = [(step, value) for step, value in run.held_out if (run.sft_seed, step) in norm.means]
    lows: list[int] = []
    for step, value in reversed(points):
        if step < run.begins or not norm.low(run.sft_seed, step, value):
            break
        lows.append(step)
    if run.crashed:
        return lows[-1] if lows else len(run.records)
    return lows[-1] if len(lows) >= LEAST_POINTS else None


def rescued(run: Run, norm: Norm) -> bool:
    """Does the checkpoint that the run ended with reach `RESCUED` of what healthy ones reach?"""
    return run.final >= RESCUED * norm.finals[run.sft_seed]
