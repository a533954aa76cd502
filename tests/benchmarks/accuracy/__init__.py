"""Wall time to a held-out accuracy, beside TRL's `GRPOTrainer`.

- `task` — the SFT checkpoint, prompts and verifier of both sides, and the held-out measurement
- `origin` — what that checkpoint comes from
- `ours`, `theirs` — the two sides; `passes` — in how many passes TRL makes a batch fastest
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
from tests.benchmarks.section import Row, Rows, Scale, Section

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

        from tests.benchmarks.accuracy import ours, passes, task, theirs

        torch.set_num_threads(1)
        layout, every = task.prepared(folder / "prepared", scale), 2 if scale == "full" else 1
        if cell == "prepare":
            policy = task.start(layout, task.settings_of(task.SAME, 0, scale))
            return {"pass_at_1": task.HeldOut(layout, scale).pass_at_1(policy.weights())}
        with TemporaryDirectory(dir=folder) as own:
            if cell == PASSES:
                return passes.run(layout, Path(own), SEEDS[0], scale)
            arm, seed = cell.split()
            if arm == "trl":
                return theirs.run(layout, Path(own), int(seed), scale, every)
            return ours.run(layout, Path(own), task.SAME if arm == "same" else task.OWN, int(seed), scale, every)

    def figures(self, rows: Rows) -> dict[str, str]:
        return reached.figures(rows)
