"""Wall time to a held-out accuracy, compared with TRL's `GRPOTrainer`.

- `task` — the SFT checkpoint, prompts and verifier of both sides, and the held-out measurement
- `origin` — what that checkpoint comes from
- `ours`, `theirs`, `arms` — the two sides, by name; `passes` — in how many passes TRL makes a batch fastest
- `clock` — what is timed, and what it was spent on
- `reached` — when a curve reaches a target and stays there; tables

Arms: ``trl`` and ``same`` do the same work a step, ``own`` is a recipe of ours (ADS, dynamic sampling,
two updates a step).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.accuracy import reached
from tests.benchmarks.section import PREPARED, Row, Rows, Scale, Section

SEEDS = (2, 3, 4, 5, 6)
PASSES = "passes of TRL"


class Accuracy(Section):
    title = "Time to accuracy"

    def cells(self, scale: Scale) -> Sequence[str]:
        arms, seeds = (("trl", "same", "own"), SEEDS) if scale == "full" else (("trl", "same"), SEEDS[:1])
        return ["prepare", PASSES, *(f"{arm} {seed}" for seed in seeds for arm in arms)]

    def measure(self, cell: str, scale: Scale, folder: Path) -> Row:
        # What is heavy is imported by the process of a cell alone.
        import torch

        from tests.benchmarks.accuracy import arms, passes
        from tests.benchmarks.accuracy.task import DEMO

        torch.set_num_threads(1)
        task = DEMO[scale]
        if cell != PASSES:
            return arms.measure(task, cell, folder)
        with TemporaryDirectory(dir=folder) as own:
            return passes.run(task, task.prepared(folder / PREPARED), Path(own), SEEDS[0], scale)

    def figures(self, rows: Rows) -> dict[str, str]:
        return reached.figures(rows)
