"""What rollouts of a coarser copy of the policy cost, and what corrections give back, on the real model.

    python -m tests.benchmarks.gap --out docs/results/gap.jsonl [--seeds 1 2 3] [--jobs 2] [--samplers int4 int8]

A run is one line of the output file; those that are there already are not repeated. Ends with the tables. A run takes
some 5 GB of memory.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tests.benchmarks.gap.arms import SAMPLERS, in_order
from tests.benchmarks.gap.figures import figures
from tests.benchmarks.gap.running import run_all
from tests.benchmarks.lines import rows_of
from tests.benchmarks.real.model import missing
from tests.benchmarks.running import QUIET
from tests.benchmarks.runs import parser_of


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, then print the tables."""
    options = _parser().parse_args(arguments)
    if not options.smoke and (why := missing()):
        sys.exit(f"error: {why}")
    os.environ.update(QUIET)
    runs = [(arm, seed) for arm, seed in in_order(options.seeds) if arm.sampler in options.samplers]
    run_all(runs[: options.most], options.out, options.work, "smoke" if options.smoke else "full", options.jobs)
    for name, text in figures(rows_of(options.out)).items():
        print(f"\n{name}\n\n{text}")


def _parser() -> argparse.ArgumentParser:
    parser = parser_of("gap", __doc__, jobs=1)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    parser.add_argument("--most", type=int, default=None, help="only the first so many runs of the order")
    parser.add_argument("--smoke", action="store_true", help="a tiny model with random weights: only that it runs")
    return parser


if __name__ == "__main__":
    main()
