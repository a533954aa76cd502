"""Runs of a benchmark in processes of their own, each of which adds a line to its output file."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from components.files import append_line
from tests.benchmarks.section import Row

Call = tuple[Any, ...]
"""A function of a module, and its arguments."""


def add_rows(
    out: Path, jobs: int, runs: Iterable[Call], shared: Iterable[Call] = (), say: Callable[[Row], str] | None = None
) -> None:
    """Append the row of every run to ``out`` as soon as the run ends, ``jobs`` at a time.

    ``shared`` are made before any run: what several runs need, and no two of them may make at the same time. A row that
    says why it was ``skipped`` is printed and not kept. After an error no other run begins, those that have
    begun are still kept, and the error is raised.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    # One process a run: the memory that a run has taken is free before the next.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        try:
            for ready in [pool.submit(*call) for call in shared]:
                ready.result()
            futures = [pool.submit(*call) for call in runs]
            errors = []
            for number, future in enumerate(as_completed(futures), start=1):
                if future.cancelled():
                    continue
                if (error := future.exception()) is not None:
                    errors.append(error)
                    for other in futures:
                        other.cancel()
                    continue
                row = future.result()
                if "skipped" not in row:
                    append_line(out, row)
                if say:
                    print(f"{number}/{len(futures)}  {say(row)}", flush=True)
            if errors:
                raise errors[0]
        finally:
            pool.shutdown(cancel_futures=True)


def parser_of(name: str, doc: str | None, jobs: int = 2) -> argparse.ArgumentParser:
    """The options that all such commands have."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / f"evenkeel-{name}")
    parser.add_argument("--jobs", type=int, default=jobs)
    return parser
