"""What generated faults cost, and what the rules made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from components.config.judgement import RuleSettings
from components.config.reading import read_rules
from components.errors import InputError
from tests.benchmarks.health.arms import PLAIN_ARM, responding, rules_of
from tests.benchmarks.health.generated.drawing import Half, conditions, fault_of
from tests.benchmarks.health.grounds import TOY, Ground
from tests.benchmarks.health.judged import BASE
from tests.benchmarks.health.store import Run, file_of, read

LOSS = 0.05
"""Share of the healthy accuracy that a fault costs at least, or it is none."""


@dataclass(frozen=True)
class Judged:
    """One fault. Finals are shares of what the healthy run of the same seed reaches: the same checkpoint, and the same
    draws until the fault begins.

    ``hurts``: without responses it costs `LOSS`, as a whole or in a family. ``at`` is the step at which a rule first
    acted, ``in_time`` whether less than half of the loss was there by then, or no more than noise is. ``named`` is the
    part that was pointed at.
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
    def plain_well(self) -> bool:
        return self.plain >= 1 - LOSS

    @property
    def worse(self) -> bool:
        """By the responses: lower than without them, and than a healthy run."""
        return made_worse(self.plain, self.final)

    @property
    def stopped_rightly(self) -> bool:
        return bool(self.stopped_by) and self.named == self.part


def made_worse(plain: float, acting: float) -> bool:
    """Of two finals, as shares of that of a healthy run, without responses and with them."""
    return acting < min(plain, 1.0) - LOSS


def judged(results: Path, rules: Path, half: Half, ground: Ground = TOY) -> list[Judged]:
    """Every fault of a half that was run without responses and with them, and has a healthy run of its seed.

    Raises:
        InputError: there are no healthy runs to compare them with.
    """
    plain, acting = results / PLAIN_ARM.name, results / responding(read_rules(rules)).name
    healthy = {run.seed: run for run in map(read, sorted(plain.glob(f"{BASE}-[0-9][0-9].json.gz")))}
    if not healthy:
        raise InputError(f"no runs of {BASE}", where=plain, how="python -m tests.benchmarks.health run ...")
    found = []
    for condition in conditions(half):
        seed = seed_of(condition, ground)
        files = [file_of(folder, condition, seed) for folder in (plain, acting)]
        if seed in healthy and all(file.exists() for file in files):
            found.append(_one(healthy[seed], *map(read, files), rules_of(rules), ground))
    return found


def seed_of(condition: str, ground: Ground = TOY) -> int:
    """Each fault is run once, with a seed of its own that has a healthy run, too."""
    return sum(condition.encode()) % ground.seeds[BASE]


def _one(healthy: Run, plain: Run, acting: Run, rules: Mapping[str, RuleSettings], ground: Ground) -> Judged:
    best = healthy.final
    responses = [one for one in acting.responses if one["kind"] == "response" and one["level"] != "warn"]
    since = [one for one in responses if one["step"] >= plain.begins]
    parts = [one["part"] or (rules[one["rule"]].part if one["rule"] in rules else "") or "" for one in since]
    at = since[0]["step"] if since else None
    return Judged(
        condition=plain.condition,
        part=fault_of(plain.condition, plain.seed).part,
        plain=plain.final / best,
        final=acting.final / best,
        hurts=plain.final < (1 - LOSS) * best or _hurts_a_family(healthy, plain, ground),
        at=at,
        in_time=at is not None and _loss_at(healthy, acting, at) <= max((best - plain.final) / 2, noise(ground)),
        named=next((part for part in parts if part not in ("", "policy")), parts[0] if parts else ""),
        stopped_by=acting.stopped_by,
    )


def _hurts_a_family(healthy: Run, run: Run, ground: Ground) -> bool:
    """A family that is lower by `LOSS` and by two standard errors of its answers at the end."""
    best, last = healthy.families[-1][1], run.families[-1][1]
    answers = ground.final_samples * ground.final_prompts / max(1, len(best))
    noise = {name: 2 * sqrt(2 * value * (1 - value) / answers) for name, value in best.items()}
    return any(last.get(name, 0.0) < (1 - LOSS) * value - noise[name] for name, value in best.items())


def noise(ground: Ground) -> float:
    """One standard error of the difference of two accuracies while training, at most."""
    return sqrt(0.5 / (ground.test_prompts * ground.test_samples))


def _loss_at(healthy: Run, run: Run, step: int) -> float:
    """True accuracy that is missing at the last measurement up to a step."""
    then, now = dict(healthy.held_out), dict(run.held_out)
    known = [at for at in now if at <= step + 1 and at in then]
    return then[max(known)] - now[max(known)] if known else 0.0


def shares(found: Iterable[Judged]) -> dict[str, tuple[int, int]]:
    """Figure -> how many of how many, of the faults that hurt; harm by responses of all."""
    every = list(found)
    hurt = [one for one in every if one.hurts]
    return {
        "acted on": (sum(one.at is not None for one in hurt), len(hurt)),
        "before half of the loss": (sum(one.in_time for one in hurt), len(hurt)),
        "part named rightly": (sum(one.named == one.part for one in hurt), len(hurt)),
        "ends well, without responses": (sum(one.plain_well for one in hurt), len(hurt)),
        "ends well, with them": (sum(one.well for one in hurt), len(hurt)),
        "ends well, or stopped with the part named": (sum(one.well or one.stopped_rightly for one in hurt), len(hurt)),
        "made worse by responses": (sum(one.worse for one in every), len(every)),
        "made worse, but for stops with the part named": (
            sum(one.worse and not one.stopped_rightly for one in every),
            len(every),
        ),
    }
