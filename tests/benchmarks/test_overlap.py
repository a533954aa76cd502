"""What sampling while the learner is at work saves: seconds a step, in turns and one and two steps ahead: `make bench`.

Once with an engine and a learner that only wait, as for other machines; once with the demo's model, where both compute
in this process and share its cores.
"""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from components.config import Settings
from components.config.reading import merge
from components.data.prompts import read_prompts
from components.scheduling import ranked_clusters
from components.training.assembly import assembled
from components.training.loop import train
from tests.benchmarks.test_checkpoint_cost import prepared
from tests.benchmarks.test_objective_cost import demo

STEPS = 6
GENERATION, LEARNING = 3.0, 2.0
"""Seconds that the other machines take."""


def waiting(part: Any, method: str, seconds: float) -> Any:
    """The part, whose method takes longer."""
    original = getattr(part, method)

    def late(*args: Any, **more: Any) -> Any:
        time.sleep(seconds)
        return original(*args, **more)

    setattr(part, method, late)
    return part


def seconds_a_step(root: Path, ahead: int, changes: dict[str, Any], **wrappers: Any) -> float:
    """Of the middle step."""
    how = {
        "rollout": {"dynamic_sampling": None, "asynchrony": {"max_staleness": ahead} if ahead else None},
        "train": {"steps": STEPS, "eval_every": 1000, "eval_prompts": 2, "checkpoint_every": 1000},
        "schedule": {"kind": "uniform"},
        "health": {"enabled": False},
    }
    settings = Settings.model_validate(merge(merge(demo(None).model_dump(mode="json"), changes), how))
    layout = prepared(root, settings)
    times: list[float] = []
    with assembled(settings, layout, ranked_clusters(read_prompts(layout.split("train")), layout), **wrappers) as parts:
        train(parts, lambda _: times.append(time.perf_counter()))
    return median(later - earlier for earlier, later in pairwise(times))


@pytest.mark.timeout(900)
def test_with_engine_and_learner_elsewhere_a_step_takes_the_longer_of_both(tmp_path: Path) -> None:
    changes = {
        "rollout": {"group_size": 2, "max_new_tokens": 4},
        "train": {"prompts_per_step": 2},
        "admission": {"min_distinct": 2},
    }
    changes |= {"reward": {"soft_overlong": None}}
    wrappers = {
        "wrap_engine": lambda engine: waiting(engine, "generate", GENERATION),
        "wrap_learner": lambda learner: waiting(learner, "step", LEARNING),
    }
    found = {n: seconds_a_step(tmp_path / str(n), n, changes, **wrappers) for n in (0, 1, 2)}
    show(found, f"generation {GENERATION:g} s and learning {LEARNING:g} s, elsewhere")
    assert found[0] >= GENERATION + LEARNING > max(found[1], found[2])


@pytest.mark.timeout(1800)
def test_with_both_in_this_process_they_share_its_cores(tmp_path: Path) -> None:
    show({n: seconds_a_step(tmp_path / str(n), n, {}) for n in (0, 1)}, "the demo's model, all in this process")


def show(found: dict[int, float], title: str) -> None:
    table = Table("steps ahead", "s a step", "of that in turns", title=title)
    for ahead, seconds in found.items():
        table.add_row(str(ahead), f"{seconds:.2f}", f"{seconds / found[0]:.0%}")
    Console().print(table)
