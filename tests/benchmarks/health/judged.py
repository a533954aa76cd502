"""Stored runs of one half, and what every detector says of each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from components.config.load import read_rules
from components.errors import InputError
from tests.benchmarks.health.arms import PLAIN_ARM, responding, rules_of
from tests.benchmarks.health.detectors import Detector, detectors_of
from tests.benchmarks.health.grounds import TOY, Ground
from tests.benchmarks.health.healthy import HEALTHY
from tests.benchmarks.health.plan import Half, in_half
from tests.benchmarks.health.scoring import Alarms
from tests.benchmarks.health.store import Run, read_all
from tests.benchmarks.health.truth import Norm, norm_of

BASE = next(iter(HEALTHY))
"""The healthy condition in which faults are planted."""


@dataclass(frozen=True)
class Scored:
    """The runs of one half, and what every detector says of each of them."""

    healthy: Sequence[Run]
    faulty: Mapping[str, Sequence[Run]]
    responding: Mapping[str, Sequence[Run]]
    responding_healthy: Sequence[Run]
    norm: Norm
    alarms: Mapping[str, Alarms]


def scored(results: Path, rules: Path, half: Half, ground: Ground = TOY) -> Scored:
    """Read what is stored and replay it. The ways without rules are tuned on the tuning half, whatever is reported.

    Raises:
        InputError: there are no healthy runs to hold the others against.
    """
    plain = read_all(results / PLAIN_ARM.name)
    acting = read_all(results / responding(read_rules(rules)).name)
    if not any(run.condition == BASE for run in plain):
        raise InputError(f"no runs of {BASE}", where=results, how="python -m tests.benchmarks.health run ...")
    healthy = [run for run in plain if run.condition in HEALTHY]
    detectors = detectors_of(rules_of(rules), [run.records for run in healthy if in_half(run.seed, "tune")])
    norm = norm_of([run for run in healthy if run.condition == BASE])
    chosen = [run for run in plain if in_half(run.seed, half)]
    if odd := sorted({run.sft_seed for run in chosen if run.condition in ground.faults} - norm.finals.keys()):
        how = f"run {BASE} with seeds of theirs first"
        raise InputError(f"no healthy runs from the SFT checkpoints {odd}", where=results, how=how)
    return Scored(
        [run for run in chosen if run.condition in HEALTHY],
        by_fault(chosen, ground),
        by_fault((run for run in acting if in_half(run.seed, half)), ground),
        [run for run in acting if in_half(run.seed, half) and run.condition in HEALTHY],
        norm,
        {name: alarms_of(detector, chosen) for name, detector in detectors.items()},
    )


def by_fault(runs: Iterable[Run], ground: Ground = TOY) -> dict[str, list[Run]]:
    """The runs of each fault, in the ground's order."""
    runs = list(runs)
    found = {name: [run for run in runs if run.condition == name] for name in ground.faults}
    return {name: members for name, members in found.items() if members}


def alarms_of(detector: Detector, runs: Sequence[Run]) -> Alarms:
    return {run.name: detector.alarms(run.records) for run in runs}
