"""What triage says of pairs of a checkpoint and a task, and what training gains on each.

    python -m tests.benchmarks.triage --out docs/results/triage.jsonl [--pairs 0 1 2] [--jobs 2]

A pair is one line of the output file, with the right answers of every prompt that triage sampled, so that another rule
can be tried on it; pairs that are there already are not repeated. Ends with the tables.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.lines import rows_of
from tests.benchmarks.real.model import missing
from tests.benchmarks.running import QUIET
from tests.benchmarks.runs import add_rows, parser_of
from tests.benchmarks.section import Row
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
    checkpoints = [(checkpoint, work, sft) for sft in sorted({PAIRS[n].sft for n in wanted})]
    add_rows(out, jobs, [(measure, work, number) for number in wanted], checkpoints, summary)


def summary(row: Row) -> str:
    """One line about a pair."""
    return f"{PAIRS[row['pair']]}: {row['before']:.0%} to {row['after']:.0%}"


def _parser() -> argparse.ArgumentParser:
    parser = parser_of("triage", __doc__)
    parser.add_argument("--pairs", nargs="+", type=int, default=list(range(len(PAIRS))))
    return parser


if __name__ == "__main__":
    main()
