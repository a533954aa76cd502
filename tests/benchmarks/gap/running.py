"""Runs in processes of their own; a line of the output file for each."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from components.errors import CorrectableError
from tests.benchmarks.gap.arms import Arm
from tests.benchmarks.lines import provenance, rows_of
from tests.benchmarks.measured_code import Code
from tests.benchmarks.runs import add_rows
from tests.benchmarks.section import Row, Scale


def run_all(runs: Sequence[tuple[Arm, int]], out: Path, work: Path, scale: Scale, jobs: int) -> None:
    """Every run that ``out`` does not hold yet, in this order, ``jobs`` at a time. One that cannot be made here says
    why and leaves no line."""
    done = {(row["sampler"], row["correction"], row["seed"]) for row in rows_of(out)}
    wanted = [(arm, seed) for arm, seed in runs if (*arm, seed) not in done]
    add_rows(out, jobs, [(measure, work, arm, seed, scale) for arm, seed in wanted], [(prepare, work, scale)], said)


def prepare(work: Path, scale: Scale) -> None:
    """Everything before training, once for all runs."""
    from tests.benchmarks.gap.training import TASKS

    work.mkdir(parents=True, exist_ok=True)
    TASKS[scale].prepared(work / "prepared")


def measure(work: Path, arm: Arm, seed: int, scale: Scale) -> Row:
    """The row of one run; where its sampler cannot be started here, the reason."""
    import torch

    from tests.benchmarks.gap.training import TASKS, run

    torch.set_num_threads(1)
    task, code = TASKS[scale], Code.now()
    with tempfile.TemporaryDirectory(dir=work) as folder:
        try:
            row = run(task, task.prepared(work / "prepared"), Path(folder), arm, seed)
        except CorrectableError as error:
            row = {"skipped": str(error).splitlines()[0]}
    return {"sampler": arm.sampler, "correction": arm.correction, "seed": seed, **row, **provenance(code)}


def said(row: Row) -> str:
    """One line about a run."""
    named = f"{row['sampler']}, {row['correction']}, seed {row['seed']}: "
    if "skipped" in row:
        return f"{named}{row['skipped']}"
    return f"{named}held-out pass@1 {row['curve'][0][1]:.0%} to {row['curve'][-1][1]:.0%}, {row['cpu_s']:.0f} s"
