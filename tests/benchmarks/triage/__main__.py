"""What triage says of pairs of a checkpoint and a task, and what training gains on each.

    python -m tests.benchmarks.triage --out docs/results/triage.jsonl [--pairs 0 1 2] [--jobs 2]

A pair is one line of the output file, with the right answers of every prompt that triage sampled, so that another rule
can be tried on it; pairs that are there already are not repeated. Ends with the tables.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from components.files import append_line
from tests.benchmarks.lines import rows_of
from tests.benchmarks.real.model import missing
from tests.benchmarks.running import QUIET
from tests.benchmarks.triage.figures import figures
from tests.benchmarks.triage.measuring import checkpoint, measure
from tests.benchmarks.triage.pairs import PAIRS


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, then print the tables."""
    options = _parser().parse_args(arguments)
    if why := missing():
        sys.exit(f"error: {why}")
    os.environ.update(QUIET)
    run_all(options.pairs, options.out, options.work, options.jobs)
    for name, text in figures(rows_of(options.out)).items():
        print(f"\n{name}\n\n{text}")


def run_all(pairs: Sequence[int], out: Path, work: Path, jobs: int) -> None:
    """Every pair that ``out`` does not hold yet, ``jobs`` at a time."""
    done = {row["pair"] for row in rows_of(out)}
    wanted = [number for number in pairs if number not in done]
    out.parent.mkdir(parents=True, exist_ok=True)
    # One process a pair: the memory that a run has taken is free before the next.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        try:
            for future in [pool.submit(checkpoint, work, sft) for sft in sorted({PAIRS[n].sft for n in wanted})]:
                future.result()
            for future in as_completed([pool.submit(measure, work, number) for number in wanted]):
                row = future.result()
                append_line(out, row)
                print(f"{PAIRS[row['pair']]}: {row['before']:.0%} to {row['after']:.0%}", flush=True)
        finally:
            pool.shutdown(cancel_futures=True)  # after an error no other pair is begun


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "evenkeel-triage")
    parser.add_argument("--pairs", nargs="+", type=int, default=list(range(len(PAIRS))))
    parser.add_argument("--jobs", type=int, default=2)
    return parser


if __name__ == "__main__":
    main()
