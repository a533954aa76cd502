"""Which runs the trial consists of, and in which order they are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tests.benchmarks.health.faults import FAULTS
from tests.benchmarks.health.healthy import HEALTHY

Half = Literal["tune", "report", "all"]
HEALTHY_SEEDS = {"dapo_uniform": 10}
OTHER_SEEDS = 4
SFT_SEEDS = (0, 2, 4)
"""Checkpoints that the recipes bring from about a third to two thirds; a run's seed decides which."""
PLATEAU = {"dapo_plateau": 1}
"""Conditions with a checkpoint of their own: that of seed 1 stays at a half whatever the schedule."""
FAULT_SEEDS = 10


def seeds_of(condition: str) -> range:
    """The seeds of one condition."""
    return range(FAULT_SEEDS if condition in FAULTS else HEALTHY_SEEDS.get(condition, OTHER_SEEDS))


def sft_seed_of(condition: str, seed: int) -> int:
    """The seed of the SFT checkpoint that a run starts from."""
    return PLATEAU.get(condition, SFT_SEEDS[seed % len(SFT_SEEDS)])


def runs() -> Iterator[tuple[str, int]]:
    """Every condition and seed: the healthy ones first, then the faults seed by seed."""
    for condition in HEALTHY:
        yield from ((condition, seed) for seed in seeds_of(condition))
    for seed in range(FAULT_SEEDS):
        yield from ((condition, seed) for condition in FAULTS)


def in_half(seed: int, half: Half) -> bool:
    """Even seeds are to tune on, odd ones to report."""
    return half == "all" or seed % 2 == (half == "report")
