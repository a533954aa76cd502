"""One cell of a comparison: the accuracy at the start, or a training of one arm."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.accuracy import ours, theirs
from tests.benchmarks.accuracy.task import HeldOut, Task, start
from tests.benchmarks.section import PREPARED, Row

PREPARE = "prepare"


def measure(task: Task, cell: str, folder: Path) -> Row:
    """``prepare``, or an arm (``trl``, ``same``, ``own``) and a seed."""
    layout = task.prepared(folder / PREPARED)
    if cell == PREPARE:
        policy = start(layout, task.settings(task.same, 0))
        return {"pass_at_1": HeldOut(task, layout).pass_at_1(policy.weights())}
    arm, seed = cell.split()
    with TemporaryDirectory(dir=folder) as own:
        if arm == "trl":
            return theirs.run(task, layout, Path(own), int(seed))
        return ours.run(task, layout, Path(own), task.same if arm == "same" else task.own, int(seed))
