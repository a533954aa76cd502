"""Measure what is missing, then print the table.

python -m tests.benchmarks.horizon --out docs/results/horizon.jsonl [--seeds 1 2 3 4 5] [--jobs 2]
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from components.files import append_line
from tests.benchmarks.horizon.figures import figures
from tests.benchmarks.horizon.measuring import METHODS, measure, prepared
from tests.benchmarks.lines import rows_of


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    done = {(row["method"], row["seed"]) for row in rows_of(options.out)}
    wanted = [(m, s) for s in options.seeds for m in METHODS if (m, s) not in done]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        # First, so that no two runs of a seed prepare its checkpoint at the same time.
        for ready in [pool.submit(prepared, options.work, seed) for seed in sorted({seed for _, seed in wanted})]:
            ready.result()
        for future in as_completed([pool.submit(measure, options.work, *one) for one in wanted]):
            append_line(options.out, future.result())
    for name, text in figures(rows_of(options.out)).items():
        print(f"{name}\n\n{text}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "evenkeel-horizon")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--jobs", type=int, default=2)
    return parser


if __name__ == "__main__":
    main()
