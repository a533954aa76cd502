"""Which runs the trial consists of, and in which order they are made."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.health.grounds import TOY, Ground


def seeds_of(condition: str, ground: Ground = TOY) -> range:
    """The seeds of one condition."""
    if condition in ground.faults:
        return range(ground.fault_seeds)
    return range(ground.seeds.get(condition, ground.other_seeds))


def sft_seed_of(condition: str, seed: int, ground: Ground = TOY) -> int:
    """The seed of the SFT checkpoint that a run starts from."""
    return ground.own_checkpoints.get(condition, ground.sft_seeds[seed % len(ground.sft_seeds)])


def runs(ground: Ground = TOY) -> Iterator[tuple[str, int]]:
    """Every condition and seed: the healthy ones first, then the faults seed by seed."""
    for condition in ground.healthy:
        yield from ((condition, seed) for seed in seeds_of(condition, ground))
    for seed in range(ground.fault_seeds):
        yield from ((condition, seed) for condition in ground.faults)
