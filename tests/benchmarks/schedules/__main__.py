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
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from components.files import append_line, read_jsonl
from tests.benchmarks.schedules.figures import figures
from tests.benchmarks.schedules.measure import measure, prepared
from tests.benchmarks.schedules.methods import METHODS, TASKS, Row


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    done = {(row["task"], row["method"], row["seed"], row["budget"]) for row in _rows(options.out)}
    wanted = [
        (task, method, seed, TASKS[task].budget)
        for task in options.tasks
        for seed in options.seeds or range(TASKS[task].seeds)
        for method in options.methods or TASKS[task].methods
    ]
    wanted = [one for one in wanted if one not in done]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        # First, so that no two runs of a seed prepare its checkpoint at the same time.
        for ready in [pool.submit(prepared, options.work, *pair) for pair in sorted({(t, s) for t, _, s, _ in wanted})]:
            ready.result()
        for future in as_completed([pool.submit(measure, options.work, *one) for one in wanted]):
            append_line(options.out, future.result())
    for task, table in figures(_rows(options.out)).items():
        print(f"{task}\n\n{table}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "evenkeel-schedules")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="those of the task unless given")
    parser.add_argument("--seeds", nargs="+", type=int, help="those of the task unless given")
    parser.add_argument("--jobs", type=int, default=2)
    return parser


def _rows(path: Path) -> list[Row]:
    return list(read_jsonl(path)) if path.exists() else []


if __name__ == "__main__":
    main()
