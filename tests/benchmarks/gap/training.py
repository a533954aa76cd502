"""One run of one arm: held-out accuracy at fp32, what was sampled, distances, and the health rules that fired."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from components.data.prompts import read_prompts
from components.layout import Layout
from components.scheduling import ranked_clusters
from components.training.assembly import assembled
from components.training.loop import train
from components.types import StepRecord
from tests.benchmarks.accuracy.task import HeldOut, Task
from tests.benchmarks.gap.arms import Arm
from tests.benchmarks.gap.distance import noted
from tests.benchmarks.real.products import PRODUCTS
from tests.benchmarks.section import Row, Scale

FRUGAL = ("train.checkpoints.asynchronous=false", "learner.micro_batch_tokens=1024", "learner.compute_dtype=float32")
"""Less memory for the same updates, and products in fp32 whatever the device."""
TASKS: Mapping[Scale, Task] = {
    "full": replace(PRODUCTS["full"], changes=FRUGAL, steps=20, prompts=2, every=20),
    "smoke": PRODUCTS["smoke"],
}
"""The task of section `real`, with smaller batches, judged at the start and at the end. Responses of the monitor are
off, its rules are not."""


def run(task: Task, layout: Layout, folder: Path, arm: Arm, seed: int) -> Row:
    """Train one arm. ``folder`` is the run's own, and empty.

    Raises:
        InputError: the sampler cannot be started here.
    """
    settings, began = task.settings(arm.changes, seed), time.process_time()
    held_out = HeldOut(task, layout)
    (folder / "out").symlink_to(layout.root / "out", target_is_directory=True)
    own = Layout(folder)
    clusters = ranked_clusters(read_prompts(own.split("train")), own)
    records: list[StepRecord] = []
    with (
        noted(settings.objective.correction) as distances,
        assembled(settings, own, clusters) as parts,
    ):
        curve = [(0, held_out.pass_at_1(parts.state.learner.weights()))]

        def on_step(record: StepRecord) -> None:
            records.append(record)
            if (record.step + 1) % task.every == 0 or parts.state.stopped_by:
                curve.append((record.step + 1, held_out.pass_at_1(parts.state.learner.weights())))

        train(parts, on_step)
        stopped_by = parts.state.stopped_by
    return {
        "curve": curve,
        "sampled": [round(record.signals["accuracy"], 4) for record in records],
        "entropy": [round(record.signals["entropy"], 4) for record in records if "entropy" in record.signals],
        "distances": distances,
        "rules": _rules(records),
        "stopped_by": stopped_by or "",
        "cpu_s": time.process_time() - began,
    }


def _rules(records: list[StepRecord]) -> dict[str, int]:
    """The health rules that fired, and the first step at which they did."""
    found: dict[str, int] = {}
    for record in records:
        for verdict in record.notes.get("verdicts", []):
            found.setdefault(verdict["rule"], record.step)
    return found
