"""Measure what is missing, then print the tables.

    python -m tests.benchmarks.schedules --out docs/results/schedules.jsonl [--tasks demo smollm2] [--seeds 0 1 2]

All methods of a seed start from the same SFT checkpoint and differ in nothing but how prompts are chosen and groups
completed. Every completion that is sampled for training counts, refills included; those for the held-out measurement do
not. A run ends when the largest target is reached or the budget is spent. A measurement is one line of the output file;
those that are there already are not repeated.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from tests.benchmarks.lines import rows_of
from tests.benchmarks.running import QUIET
from tests.benchmarks.runs import add_rows, parser_of
from tests.benchmarks.schedules.figures import figures
from tests.benchmarks.schedules.measure import measure, prepared
from tests.benchmarks.schedules.methods import METHODS, TASKS


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    os.environ.update(QUIET)
    done = {(row["task"], row["method"], row["seed"], row["budget"]) for row in rows_of(options.out)}
    wanted = [
        (task, method, seed, TASKS[task].budget)
        for task in options.tasks
        for seed in options.seeds or range(TASKS[task].seeds)
        for method in options.methods or TASKS[task].methods
    ]
    wanted = [one for one in wanted if one not in done]
    checkpoints = [(prepared, options.work, *pair) for pair in sorted({(t, s) for t, _, s, _ in wanted})]
    add_rows(options.out, options.jobs, [(measure, options.work, *one) for one in wanted], checkpoints)
    for task, table in figures(rows_of(options.out)).items():
        print(f"{task}\n\n{table}\n")


def _parser() -> argparse.ArgumentParser:
    parser = parser_of("schedules", __doc__)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="those of the task unless given")
    parser.add_argument("--seeds", nargs="+", type=int, help="those of the task unless given")
    return parser


if __name__ == "__main__":
    main()
