"""What the rules said of healthy runs, while they could act on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

from components.config.reading import read_rules
from components.errors import InputError
from tests.benchmarks.health.arms import responding
from tests.benchmarks.health.generated.judged import made_worse, noise
from tests.benchmarks.health.grounds import TOY, Ground
from tests.benchmarks.health.judged import BASE
from tests.benchmarks.health.scoring import poisson
from tests.benchmarks.health.store import Run, read_all
from tests.benchmarks.spread import table


def healthy_page(results: Path, rules: Path, ground: Ground = TOY, first_seed: int = 0) -> str:
    """Verdicts in 1,000 healthy steps with their intervals, by recipe and by rule; of runs from a seed on.

    Raises:
        InputError: there is no such run.
    """
    folder = results / responding(read_rules(rules)).name
    runs = [run for run in read_all(folder) if run.condition in ground.healthy and run.seed >= first_seed]
    if not runs:
        raise InputError("no healthy runs", where=folder, how="python -m tests.benchmarks.health run --healthy 14 ...")
    recipes = len({run.condition for run in runs})
    head = f"{len(runs)} healthy runs of {recipes} recipes and schedules."
    parts = [head, _rates(runs, ground), _by_recipe(runs), _by_rule(runs), _luck(runs)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _luck(runs: Sequence[Run]) -> str:
    chance, triples = by_chance([run for run in runs if run.condition == BASE])
    if not triples:
        return ""
    return (
        f"Of {triples} triples of healthy {BASE} runs of one checkpoint with different seeds, taken as the healthy "
        f"run, the run without responses and the run with them, {chance} count as made worse."
    )


def by_chance(runs: Sequence[Run]) -> tuple[int, int]:
    """How often a run counts as made worse by responses though nothing but the draws differs, of how many triples. More
    than for a fault: there the draws are the same until it begins."""
    triples = [three for three in permutations(runs, 3) if len({run.sft_seed for run in three}) == 1]
    return sum(
        made_worse(plain.final / healthy.final, acting.final / healthy.final) for healthy, plain, acting in triples
    ), len(triples)


def has_fallen(run: Run, step: int, ground: Ground) -> bool:
    """Whether true accuracy, at its last measurement up to a step, was below its best by two standard errors."""
    known = [accuracy for at, accuracy in run.held_out if at <= step + 1]
    return bool(known) and max(known) - known[-1] > 2 * noise(ground)


def said(run: Run, acting: bool) -> list[str]:
    """The rules that fired, as often as they did: those that act, or those that warn."""
    return [rule for _, rule in _said(run, acting)]


def _said(run: Run, acting: bool) -> list[tuple[int, str]]:
    """The same with their steps."""
    found = [(record.step, one) for record in run.records for one in record.notes.get("verdicts", ())]
    return [(step, one["rule"]) for step, one in found if (one["level"] != "warn") == acting]


def _rates(runs: list[Run], ground: Ground) -> str:
    steps, rows = sum(len(run.records) for run in runs), []
    false = [sum(not has_fallen(run, step, ground) for step, _ in _said(run, True)) for run in runs]
    for name, counts in (
        ("acting verdicts", [len(said(run, True)) for run in runs]),
        ("of these while true accuracy had not fallen", false),
        ("warnings", [len(said(run, False)) for run in runs]),
    ):
        rate = poisson(sum(counts), steps)
        interval, any_ = f"{rate.low:.2f} to {rate.high:.2f}", f"{sum(map(bool, counts))} of {len(runs)}"
        rows.append([name, str(rate.count), str(steps), f"{rate.rate:.2f}", interval, any_])
    return table(["in healthy runs", "count", "steps", "in 1,000 steps", "95 %", "runs with any"], rows)


def _by_recipe(runs: list[Run]) -> str:
    rows = []
    for name in sorted({run.condition for run in runs}):
        some = [run for run in runs if run.condition == name]
        counts = [sum(len(said(run, acting)) for run in some) for acting in (True, False)]
        steps, stopped = sum(len(run.records) for run in some), sum(bool(run.stopped_by) for run in some)
        rows.append([f"`{name}`", *map(str, (len(some), steps, *counts, stopped))])
    return table(["recipe", "runs", "steps", "acting verdicts", "warnings", "stopped"], rows)


def _by_rule(runs: list[Run]) -> str:
    counts = {acting: Counter(rule for run in runs for rule in said(run, acting)) for acting in (True, False)}
    levels = (("acts", counts[True]), ("warns", counts[False]))
    rows = [[f"`{rule}`", level, str(count)] for level, found in levels for rule, count in found.most_common()]
    return table(["rule that fired", "level", "times"], rows)
