"""Stored runs, and what the rules say of each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from components.config.reading import read_rules
from components.errors import InputError
from tests.benchmarks.health.arms import PLAIN_ARM, responding, rules_of
from tests.benchmarks.health.grounds import TOY, Ground
from tests.benchmarks.health.healthy import HEALTHY
from tests.benchmarks.health.scoring import Alarms, alarms_of
from tests.benchmarks.health.store import Run, read_all
from tests.benchmarks.health.truth import Norm, norm_of

BASE = next(iter(HEALTHY))
"""The healthy condition in which faults are planted."""


@dataclass(frozen=True)
class Scored:
    """Stored runs, and what the rules say of those without responses."""

    healthy: Sequence[Run]
    faulty: Mapping[str, Sequence[Run]]
    responding: Mapping[str, Sequence[Run]]
    norm: Norm
    alarms: Alarms


def scored(results: Path, rules: Path, ground: Ground = TOY) -> Scored:
    """Read what is stored and replay it.

    Raises:
        InputError: there are no healthy runs to compare the others with.
    """
    plain = read_all(results / PLAIN_ARM.name)
    acting = read_all(results / responding(read_rules(rules)).name)
    if not any(run.condition == BASE for run in plain):
        raise InputError(f"no runs of {BASE}", where=results, how="python -m tests.benchmarks.health run ...")
    healthy = [run for run in plain if run.condition in HEALTHY]
    norm = norm_of([run for run in healthy if run.condition == BASE])
    if odd := sorted({run.sft_seed for run in plain if run.condition in ground.faults} - norm.finals.keys()):
        how = f"run {BASE} with seeds of theirs first"
        raise InputError(f"no healthy runs from the SFT checkpoints {odd}", where=results, how=how)
    alarms = alarms_of(rules_of(rules), plain)
    return Scored(healthy, by_fault(plain, ground), by_fault(acting, ground), norm, alarms)


def by_fault(runs: Iterable[Run], ground: Ground = TOY) -> dict[str, list[Run]]:
    """The runs of each fault, in the ground's order."""
    runs = list(runs)
    found = {name: [run for run in runs if run.condition == name] for name in ground.faults}
    return {name: members for name, members in found.items() if members}
