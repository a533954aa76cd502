"""One run, measured every few steps on the dev split, and its curve."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from components.config import Settings, load
from components.data.prompts import read_prompts
from components.files import write_text
from components.layout import Layout
from components.scheduling import Schedule, ranked_clusters
from components.training.assembly import Parts, assembled
from components.training.loop import train
from components.types import StepRecord
from tests.benchmarks.schedules.calibration import Watched
from tests.benchmarks.schedules.figures import Curve, reached_at
from tests.benchmarks.schedules.methods import METHODS, TASKS, Row
from tests.recipes import CONFIGS, prepare


class Enough(Exception):
    """The target is reached, or the budget spent."""


def prepared(work: Path, task: str, seed: int) -> Path:
    """A folder with everything before training."""
    of = TASKS[task]
    return prepare(work / f"{task}-{seed}", "dapo", {**of.changes, "seed": seed}, of.base)


def measure(work: Path, task: str, method: str, seed: int, budget: int) -> Row:
    """Train with one method from the prepared checkpoint of its seed, until the largest target or the budget."""
    layout = Layout(work / f"run-{task}-{method}-{seed}")
    shutil.rmtree(layout.root, ignore_errors=True)
    shutil.copytree(prepared(work, task, seed) / "out", layout.out)
    settings = run_settings(layout.root, task, method, seed)
    row = {"task": task, "method": method, "seed": seed, "budget": budget}
    curve: Curve = []
    sampled = dead = groups = 0.0
    clock = Clock()
    watched: list[Watched] = []

    def watch(record: StepRecord) -> None:
        nonlocal sampled, dead, groups
        if "dev_pass_at_1" in record.signals:  # measured before the step
            curve.append((sampled, record.signals["dev_pass_at_1"], clock.training))
        sampled += record.signals["completions_sampled"]
        groups += record.signals["groups_sampled"]
        dead += record.signals["groups_sampled"] * record.signals.get("zero_variance_share", 0.0)
        if sampled >= budget or reached_at(curve, max(TASKS[task].targets)) is not None:
            raise Enough

    try:
        run(settings, layout, watch, clock, watched)
    except Enough:
        pass
    except Exception as error:  # one run that fails does not end the measurement of the others; the table says so
        return {**row, "failed": f"{type(error).__name__}: {error}"[:300]}
    shutil.rmtree(layout.root, ignore_errors=True)
    found = {"curve": curve, "sampled": sampled, "dead": dead / groups, "seconds": clock.training}
    return {**row, **found, "forecast": watched[0].summary() if method == "uniform" else None}


def run_settings(folder: Path, task: str, method: str, seed: int) -> Settings:
    """The task with one method, stopped by nothing but `watch`."""
    of, own = TASKS[task], METHODS[method]
    below, top = folder / "below.yaml", folder / "config.yaml"
    write_text(below, yaml.safe_dump({"extends": [str(CONFIGS / of.base)], **of.changes}))
    steps = {"steps": 1000, "checkpoint_every": 10_000, "keep_pairs": 0, **of.measured}
    above = {**own, "seed": seed, "health": {"enabled": False}, "train": {**steps, **own["train"]}}
    write_text(top, yaml.safe_dump({"extends": [str(below)], **above}))
    return load(top)


class Clock:
    """Processor seconds of this process, without those of the held-out measurement."""

    def __init__(self) -> None:
        self._began, self._apart = time.process_time(), 0.0

    @property
    def training(self) -> float:
        return time.process_time() - self._began - self._apart

    def apart(self, job: Callable[[], Any]) -> Callable[[], Any]:
        """``job``, whose time does not count."""

        def timed() -> Any:
            began = time.process_time()
            result = job()
            self._apart += time.process_time() - began
            return result

        return timed


def run(
    settings: Settings,
    layout: Layout,
    watch: Callable[[StepRecord], None],
    clock: Clock,
    watched: list[Watched],
) -> None:
    """Stage `train` without triage, health rules and outputs. The schedule is added to ``watched``."""

    def wrap(schedule: Schedule) -> Schedule:
        watched.append(Watched(schedule, settings.rollout.group_size))
        return watched[-1]

    clusters = ranked_clusters(read_prompts(layout.split("train")), layout)
    with assembled(settings, layout, clusters, wrap_schedule=wrap) as parts:
        _time_apart(parts, clock)
        train(parts, watch)


def _time_apart(parts: Parts, clock: Clock) -> None:
    """The dev split is sampled as soon as it is requested, in this process."""
    parts.rollouts.dev = clock.apart(parts.rollouts.dev)  # type: ignore[method-assign]
