"""Measure what is missing, then print the table.

python -m tests.benchmarks.horizon --out docs/results/horizon.jsonl [--seeds 1 2 3 4 5] [--jobs 2]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from tests.benchmarks.horizon.figures import figures
from tests.benchmarks.horizon.measuring import METHODS, measure, prepared
from tests.benchmarks.lines import rows_of
from tests.benchmarks.running import QUIET
from tests.benchmarks.runs import add_rows, parser_of


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    os.environ.update(QUIET)
    done = {(row["method"], row["seed"]) for row in rows_of(options.out)}
    wanted = [(m, s) for s in options.seeds for m in METHODS if (m, s) not in done]
    checkpoints = [(prepared, options.work, seed) for seed in sorted({seed for _, seed in wanted})]
    add_rows(options.out, options.jobs, [(measure, options.work, *one) for one in wanted], checkpoints)
    for name, text in figures(rows_of(options.out)).items():
        print(f"{name}\n\n{text}\n")


def _parser() -> argparse.ArgumentParser:
    parser = parser_of("horizon", __doc__)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    return parser


if __name__ == "__main__":
    main()
