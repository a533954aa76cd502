"""The schedules: what a run pays once (building), in every step (a draw, an observation), and at every checkpoint."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.benchmarks.growth.curve import Cost, Curve
from tests.benchmarks.growth.measures import least_ms
from tests.benchmarks.section import Row

if TYPE_CHECKING:
    from components.scheduling import Schedule
    from components.types import Group, Prompt

COUNT, REPEATS = 128, 7
GROUP = 8
CLUSTERS = 16
PART = 10**4
"""Prompts of a schedule whose table of places fits into the caches of any processor."""


def uniform(prompts: list[Prompt]) -> Schedule:
    from components.scheduling import Uniform

    return Uniform(prompts, 0)


def difficulty_pools(prompts: list[Prompt]) -> Schedule:
    """With every prompt measured, which is the worst case: the gate has to look at all of them."""
    from components.config.scheduling import PoolsSchedule
    from components.scheduling import DifficultyPools
    from components.scheduling.checks import pack

    schedule, every = DifficultyPools(prompts, PoolsSchedule(kind="difficulty_pools"), 0), np.arange(len(prompts))
    measured = {
        "measured": pack(every, "i4"),
        "success": pack(every % 9 / 8, "f8"),
        "measured_at": pack(every % 50, "i4"),
    }
    schedule.load_state_dict({**schedule.state_dict(), **measured, "draws": 50})
    return schedule


def forecast(prompts: list[Prompt]) -> Schedule:
    """With every prompt measured, which is the largest state."""
    from components.config.scheduling import ForecastSchedule
    from components.scheduling.forecast import Forecast, SuccessModel, kind_of

    settings, every = ForecastSchedule(kind="forecast"), np.arange(len(prompts))
    model = SuccessModel([kind_of(prompt) for prompt in prompts], settings.memory)
    right = (every % (GROUP + 1)).astype(float)
    model.note(every, right, GROUP - right, draw=0)
    schedule = Forecast(prompts, settings, GROUP, 0)
    schedule.load_state_dict({**schedule.state_dict(), **model.state_dict(), "draws": 1})
    return schedule


def ads(prompts: list[Prompt]) -> Schedule:
    from components.config.scheduling import AdsSchedule
    from components.scheduling import Ads

    clusters = {k: prompts[k::CLUSTERS] for k in range(CLUSTERS)}
    return Ads(clusters, AdsSchedule(window=COUNT // 4, active=4, move="outside"), 0)


def answered(prompt: Prompt, right: int) -> Group:
    from components.types import Completion, Group, Score

    scores = tuple(Score(float(place < right)) for place in range(GROUP))
    return Group(prompt, (1,), (Completion((1,), (0.0,), "stop", ""),) * GROUP, scores)


def measure(build: Callable[[list[Prompt]], Schedule], size: int, folder: Path) -> Row:
    """Everything in milliseconds, the state in kB."""
    import components.scheduling  # noqa: F401 - takes longer than building a schedule
    from components.types import Prompt

    prompts = [Prompt(f"{i:016x}", "q", "a", "s") for i in range(size)]
    repeats = 3 if size < 10**6 else 1
    built = least_ms(lambda: build(prompts), repeats)
    parts = least_ms(lambda: [build(prompts[start : start + PART]) for start in range(0, size, PART)], repeats)
    schedule = build(prompts)
    draws, observations = [], []
    for repeat in range(REPEATS):
        began = time.process_time()
        drawn = schedule.next(COUNT)
        draws.append(1e3 * (time.process_time() - began))
        groups = [answered(prompt, (repeat + i) % (GROUP + 1)) for i, prompt in enumerate(drawn)]
        observations.append(least_ms(partial(schedule.observe, groups), repeats=1))
    saved = json.dumps(schedule.state_dict())
    return {
        "build_ms": built,
        "parts_ms": parts,
        "draw_ms": min(draws),
        "observe_ms": min(observations),
        "save_ms": least_ms(lambda: json.dumps(schedule.state_dict())),
        "load_ms": least_ms(lambda: schedule.load_state_dict(json.loads(saved))),
        "state_kb": len(saved) / 1e3,
    }


CACHES = (
    "the processor's caches: one operation a prompt, in a table of all of them; as many prompts in schedules of "
    f"{PART:,} each, with small tables, are the next line of the table above"
)
COSTS = (
    Cost("build_ms", "built", CACHES),
    Cost("parts_ms", f"as many, in schedules of {PART:,} at the most"),
    Cost("draw_ms", f"a draw of {COUNT}"),
    Cost("observe_ms", f"{COUNT} groups observed"),
    Cost("save_ms", "state to JSON"),
    Cost("load_ms", "state from JSON"),
    Cost("state_kb", "state"),
)


def curve(build: Callable[[list[Prompt]], Schedule]) -> Curve:
    sizes = (10**3, 10**4, 10**5, 10**6)
    return Curve("prompts", build.__name__, sizes, 10**3, partial(measure, build), COSTS)
