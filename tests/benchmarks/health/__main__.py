"""The command line; `tests.benchmarks.health` says how to call it."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import get_args

from components.errors import CorrectableError
from tests.benchmarks.health.arms import DEFAULT_RULES, arms_of
from tests.benchmarks.health.generated.drawing import Half, conditions
from tests.benchmarks.health.generated.healthy import healthy_page
from tests.benchmarks.health.generated.judged import seed_of
from tests.benchmarks.health.generated.table import page as generated_page
from tests.benchmarks.health.grounds import GROUNDS, Ground
from tests.benchmarks.health.running import missing, not_stored, run_all


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, or judge what is there."""
    options = _parser().parse_args(arguments)
    if options.command == "run":
        arms, ground = arms_of(options.arm, options.rules), GROUNDS[options.ground]
        if options.healthy:
            names = [name for name in ground.healthy if name in (options.only or ground.healthy)]
            seeds = [seed for seed in range(options.healthy) if options.seeds is None or seed in options.seeds]
            tasks = [(arm, name, seed) for name in names for seed in seeds for arm in arms]
            todo = not_stored(options.results, tasks)
        elif options.generated:
            tasks = [(arm, name, seed_of(name, ground)) for name in named(options, ground) for arm in arms]
            todo = not_stored(options.results, tasks)
        else:
            todo = missing(options.results, arms, options.only, options.seeds, ground)
        run_all(todo, options.work, options.results, options.jobs, ground)
        return
    if options.command == "generated":
        ground = GROUNDS[options.ground]
        print(generated_page(options.results, options.rules, options.half, ground, named=options.named))
        return
    print(healthy_page(options.results, options.rules, GROUNDS[options.ground], options.first_seed))


def named(options: argparse.Namespace, ground: Ground) -> list[str]:
    """The first generated faults of a half that make sense on a ground."""
    return list(islice((n for n in conditions(options.generated) if not ground.why_left_out(n)), options.count))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.health", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    trial = commands.add_parser("run", help="train what is not stored yet")
    trial.add_argument("--results", type=Path, required=True)
    trial.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "evenkeel-trial")
    trial.add_argument("--arm", choices=["plain", "respond", "both"], default="plain")
    trial.add_argument("--rules", type=Path, default=DEFAULT_RULES)
    trial.add_argument("--only", nargs="+", default=[], help="conditions; all unless given")
    trial.add_argument("--seeds", nargs="+", type=int, help="seeds; those of the plan unless given")
    trial.add_argument("--jobs", type=int, default=2)
    trial.add_argument("--generated", choices=get_args(Half), help="faults that are drawn, of this half of the kinds")
    trial.add_argument("--count", type=int, default=100, help="how many of them")
    trial.add_argument("--healthy", type=int, default=0, help="healthy runs alone: seeds below it")
    drawn = commands.add_parser("generated", help="judge the faults that were drawn")
    drawn.add_argument("--half", choices=get_args(Half), default="seen")
    drawn.add_argument("--named", action="store_true", help="every fault by its name")
    well = commands.add_parser("healthy", help="what the rules said of healthy runs")
    well.add_argument("--first-seed", type=int, default=0, help="runs of this seed and later ones alone")
    for judge in (drawn, well):
        judge.add_argument("--results", type=Path, required=True)
        judge.add_argument("--rules", type=Path, default=DEFAULT_RULES)
    for command in commands.choices.values():
        command.add_argument("--ground", choices=list(GROUNDS), default="toy", help="the model and task of the runs")
    return parser


if __name__ == "__main__":
    try:
        main()
    except CorrectableError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
