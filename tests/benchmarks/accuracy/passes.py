"""In how many forward and backward passes TRL makes a batch fastest; the other cells take that many: one."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

from components.layout import Layout
from tests.benchmarks.accuracy.task import Task, start, training_prompts
from tests.benchmarks.accuracy.theirs import Reward, after_steps, trainer_of
from tests.benchmarks.section import Row, Scale

PASSES = (1, 2, 4)
STEPS = 4
"""Of a run, the first of which warms it up and does not count."""


def run(task: Task, layout: Layout, folder: Path, seed: int, scale: Scale) -> Row:
    """Seconds of processor time of every step that counts, by the number of passes.

    Each number has two runs of the same steps, forth and back, so that a machine that changes speed favours none.
    """
    found: dict[str, list[float]] = {str(passes): [] for passes in PASSES}
    for passes in PASSES if scale == "smoke" else (*PASSES, *reversed(PASSES)):
        found[str(passes)] += _steps(task, layout, folder, seed, scale, passes)
    return {"step_cpu_s": found}


def _steps(task: Task, layout: Layout, folder: Path, seed: int, scale: Scale, passes: int) -> list[float]:
    settings = task.settings(task.same, seed, steps=STEPS if scale == "full" else 2)
    trainer = trainer_of(
        start(layout, settings), Reward(training_prompts(layout), settings), settings, folder, seed, passes
    )
    ends: list[float] = []
    trainer.add_callback(after_steps(lambda step: ends.append(time.process_time())))
    trainer.train()
    return [later - earlier for earlier, later in pairwise(ends)]
