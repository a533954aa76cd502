"""The stages, in order. Each module has ``run(settings, layout)`` and is imported only when it runs.

- `data` — make or read the prompts, validate them, split them
- `audit` — what the verifier makes of answers that are known to be right or wrong
- `sft` — the supervised checkpoint
- `admission` — suspicious training prompts are reported, or withheld for a person
- `triage` — can that checkpoint learn by RL at all?
- `clusters` — groups of similar prompts, ranked by difficulty, where the schedule reads them
- `train` — GRPO under watch
- `evaluate` — SFT checkpoint and trained policy on held-out prompts
- `gate` — may approval be requested?
- `report` — the page that person reads
- `dpo` — outside the pipeline: direct preference optimisation on the pairs that `train` stored
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from components.config import Settings
from components.layout import Layout
from components.loading import without_collection
from components.progress import reporting
from components.working import working

NAMES = ("data", "audit", "sft", "admission", "triage", "clusters", "train", "evaluate", "gate", "report", "dpo")
STAGES: dict[str, str] = {name: f"components.stages.{name}" for name in NAMES}
"""Name -> module."""
OPTIONAL: dict[str, Callable[[Settings], bool]] = {"dpo": lambda settings: settings.dpo.steps > 0}
"""Stages outside the pipeline, and whether the settings enable them. Otherwise their outputs are empty."""


def wanted(settings: Settings) -> list[str]:
    """The stages that a run with these settings consists of, in order."""
    return [name for name in STAGES if name not in OPTIONAL or OPTIONAL[name](settings)]


def run_stage(name: str, settings: Settings, layout: Layout) -> None:
    """Run one stage in this process. What it raises is its answer; what it writes is in `components.layout`."""
    with reporting(name):
        with working("loading the code"), without_collection():
            stage = importlib.import_module(STAGES[name])
        stage.run(settings, layout)
