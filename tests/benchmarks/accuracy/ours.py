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
from components.stages.clusters import ranked_clusters
from components.training.assembly import assembled
from components.training.loop import train
from components.training.reference import Reference
from components.types import StepRecord
from tests.benchmarks.accuracy.clock import Clock
from tests.benchmarks.accuracy.task import HeldOut, settings_of
from tests.benchmarks.section import Row, Scale

PARTS = {
    (TorchEngine, "generate"): "rollout",
    (Scorer, "score_groups"): "scoring",
    (Reference, "logprobs"): "log-probs",
    (TorchLearner, "logprobs"): "log-probs",
    (TorchLearner, "step"): "update",
    (TorchEngine, "load_weights"): "sync",
}


def run(layout: Layout, folder: Path, extra: Sequence[str], seed: int, scale: Scale, every: int) -> Row:
    """Train, measuring held-out accuracy every so many steps. ``folder`` is the run's own, and empty."""
    settings = settings_of(extra, seed, scale)
    held_out, began = HeldOut(layout, scale), time.perf_counter()
    (folder / "out").symlink_to(layout.root / "out", target_is_directory=True)
    own = Layout(folder)
    clusters = ranked_clusters(read_prompts(own.split("train")), own)
    reached: list[tuple[int, float, float]] = []
    completions = 0
    with assembled(settings, own, clusters) as parts:
        clock = Clock()
        startup = time.perf_counter() - began

        def on_step(record: StepRecord) -> None:
            nonlocal completions
            completions += int(record.signals["groups_sampled"]) * settings.rollout.group_size
            done = record.step + 1
            if done % every:
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
