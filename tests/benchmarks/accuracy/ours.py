"""Evenkeel's side: the loop of the stage `train`, with everything that a run writes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

from components.data.prompts import read_prompts
from components.layout import Layout
from components.learner.torch_learner import TorchLearner
from components.rewards import Scorer
from components.rollout.torch_engine import TorchEngine
from components.scheduling import ranked_clusters
from components.training.assembly import assembled
from components.training.loop import train
from components.types import StepRecord
from tests.benchmarks.accuracy.clock import Clock
from tests.benchmarks.accuracy.task import HeldOut, Task
from tests.benchmarks.section import Row

PARTS = {
    (TorchEngine, "generate"): "rollout",
    (Scorer, "score_groups"): "scoring",
    (TorchLearner, "reference"): "log-probs",
    (TorchLearner, "logprobs"): "log-probs",
    (TorchLearner, "step"): "update",
    (TorchEngine, "load_weights"): "sync",
}


def run(task: Task, layout: Layout, folder: Path, extra: Sequence[str], seed: int) -> Row:
    """Train, measuring held-out accuracy every so many steps. ``folder`` is the run's own, and empty."""
    settings = task.settings(extra, seed)
    held_out, began = HeldOut(task, layout), time.perf_counter()
    (folder / "out").symlink_to(layout.root / "out", target_is_directory=True)
    own = Layout(folder)
    clusters = ranked_clusters(read_prompts(own.split("train")), own)
    reached: list[tuple[int, float, float]] = []
    completions = 0
    with assembled(settings, own, clusters) as parts:
        clock = Clock(task.clock)
        startup = time.perf_counter() - began

        def on_step(record: StepRecord) -> None:
            nonlocal completions
            completions += int(record.signals["groups_sampled"]) * settings.rollout.group_size
            done = record.step + 1
            if done % task.every:
                return
            parts.state.writer.wait()  # writing a checkpoint takes time of the run, not of the measurement
            seconds = clock.seconds()
            with clock.stopped():
                reached.append((done, seconds, held_out.pass_at_1(parts.state.learner.weights())))

        with ExitStack() as stack:
            for (owner, name), phase in PARTS.items():
                stack.enter_context(mock.patch.object(owner, name, clock.counted(phase, getattr(owner, name))))
            train(parts, on_step)
        seconds = clock.seconds()
    return {"startup_s": startup, "seconds": seconds, "phases_s": clock.phases(), "curve": reached,
            "steps": settings.train.steps, "completions": completions}  # fmt: skip
