"""The command line; `tests.benchmarks.health` says how to call it."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.health.arms import DEFAULT_RULES, arms_of
from tests.benchmarks.health.running import missing, run_all


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, or judge what is there."""
    options = _parser().parse_args(arguments)
    if options.command == "run":
        todo = missing(options.results, arms_of(options.arm, options.rules), options.only, options.seeds)
        run_all(todo, options.work, options.results, options.jobs)


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
    return parser


if __name__ == "__main__":
    main()
