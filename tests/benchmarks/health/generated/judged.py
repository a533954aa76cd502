"""What generated faults cost, and what the rules made of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean

from components.config.judgement import RuleSettings
from components.config.load import read_rules
from components.errors import InputError
from tests.benchmarks.health.arms import PLAIN_ARM, responding, rules_of
from tests.benchmarks.health.generated.drawing import Half, conditions, fault_of
from tests.benchmarks.health.grounds import TOY, Ground
from tests.benchmarks.health.judged import BASE
from tests.benchmarks.health.store import Run, file_of, read
from tests.benchmarks.health.truth import Norm, norm_of

LOSS = 0.05
"""Share of the healthy accuracy that a fault costs at least, or it is none."""


@dataclass(frozen=True)
class Judged:
    """One fault. Finals are shares of what healthy runs from the same checkpoint reach.

    ``hurts``: without responses it costs `LOSS`, as a whole or in a family. ``at`` is the step at which a rule first
    acted, ``in_time`` whether less than half of the loss was there by then. ``named`` is the part that was pointed at.
    """

    condition: str
    part: str
    plain: float
    final: float
    hurts: bool
    at: int | None
    in_time: bool
    named: str
    stopped_by: str

    @property
    def well(self) -> bool:
        return self.final >= 1 - LOSS

    @property
    def worse(self) -> bool:
        """By the responses, measurably."""
        return self.final < self.plain - LOSS

    @property
    def stopped_rightly(self) -> bool:
        return bool(self.stopped_by) and self.named == self.part


def judged(results: Path, rules: Path, half: Half, ground: Ground = TOY) -> list[Judged]:
    """Every fault of a half that was run without responses and with them.

    Raises:
        InputError: there are no healthy runs to compare them with.
    """
    plain, acting = results / PLAIN_ARM.name, results / responding(read_rules(rules)).name
    healthy = [read(path) for path in sorted(plain.glob(f"{BASE}-[0-9][0-9].json.gz"))]
    if not healthy:
        raise InputError(f"no runs of {BASE}", where=plain, how="python -m tests.benchmarks.health run ...")
    norm, families = norm_of(healthy), family_norm(healthy)
    found = []
    for condition in conditions(half):
        seed = seed_of(condition)
        files = [file_of(folder, condition, seed) for folder in (plain, acting)]
        if all(file.exists() for file in files):
            found.append(_one(*map(read, files), norm, families, rules_of(rules), ground))
    return found


def seed_of(condition: str) -> int:
    """Each fault is run once, with a seed of its own."""
    return sum(condition.encode()) % 10


Families = Mapping[tuple[int, str], float]


def family_norm(healthy: Sequence[Run]) -> Families:
    """SFT seed and family -> mean final accuracy."""
    values: dict[tuple[int, str], list[float]] = defaultdict(list)
    for run in healthy:
        for name, value in run.families[-1][1].items():
            values[run.sft_seed, name].append(value)
    return {key: fmean(found) for key, found in values.items()}


def _one(
    plain: Run, acting: Run, norm: Norm, families: Families, rules: Mapping[str, RuleSettings], ground: Ground
) -> Judged:
    best = norm.finals[plain.sft_seed]
    responses = [one for one in acting.responses if one["kind"] == "response" and one["level"] != "warn"]
    since = [one for one in responses if one["step"] >= plain.begins]
    parts = [rules[one["rule"]].part or "" for one in since]
    at = since[0]["step"] if since else None
    return Judged(
        condition=plain.condition,
        part=fault_of(plain.condition, plain.seed).part,
        plain=plain.final / best,
        final=acting.final / best,
        hurts=plain.final < (1 - LOSS) * best or _hurts_a_family(plain, families, ground),
        at=at,
        in_time=at is not None and _loss_at(acting, at, norm) <= (best - plain.final) / 2,
        named=next((part for part in parts if part not in ("", "policy")), parts[0] if parts else ""),
        stopped_by=acting.stopped_by,
    )


def _hurts_a_family(run: Run, families: Families, ground: Ground) -> bool:
    """A family that is lower by `LOSS` and by two standard errors of its answers at the end."""
    last = run.families[-1][1]
    answers = ground.final_samples * ground.final_prompts / max(1, len(last))
    for name, value in last.items():
        healthy = families.get((run.sft_seed, name), 0.0)
        noise = 2 * sqrt(2 * healthy * (1 - healthy) / answers)
        if value < (1 - LOSS) * healthy - noise:
            return True
    return False


def _loss_at(run: Run, step: int, norm: Norm) -> float:
    """True accuracy that is missing at the last measurement up to a step."""
    known = [(at, value) for at, value in run.held_out if at <= step + 1 and (run.sft_seed, at) in norm.means]
    return norm.means[run.sft_seed, known[-1][0]] - known[-1][1] if known else 0.0


def shares(found: Iterable[Judged]) -> dict[str, tuple[int, int]]:
    """Figure -> how many of how many, of the faults that hurt; harm by responses of all."""
    every = list(found)
    hurt = [one for one in every if one.hurts]
    return {
        "acted on": (sum(one.at is not None for one in hurt), len(hurt)),
        "before half of the loss": (sum(one.in_time for one in hurt), len(hurt)),
        "part named rightly": (sum(one.named == one.part for one in hurt), len(hurt)),
        "ends well, without responses": (sum(one.plain >= 1 - LOSS for one in hurt), len(hurt)),
        "ends well, with them": (sum(one.well for one in hurt), len(hurt)),
        "ends well, or stopped with the part named": (sum(one.well or one.stopped_rightly for one in hurt), len(hurt)),
        "made worse by responses": (sum(one.worse for one in every), len(every)),
    }
