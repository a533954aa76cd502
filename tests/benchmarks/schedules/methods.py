"""What is compared, and on which tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]

PLAIN: Row = {"dynamic_sampling": None, "two_stage": None}
FILL: Row = PLAIN | {"dynamic_sampling": {"max_attempts": 4}}
SIZED: Row = PLAIN | {"dynamic_sampling": {"max_attempts": 4, "sized": True}}
STAGES: Row = {"two_stage": {"first": 4}}
ADS: Row = {"kind": "ads", "window": 8, "active": 4, "move": "outside", "min_prob": 0.5}


def method(kind: str | Row, rollout: Row, **train: int) -> Row:
    """Settings of a run, but for those that all have."""
    return {"schedule": {"kind": kind} if isinstance(kind, str) else kind, "rollout": rollout, "train": train}


METHODS: dict[str, Row] = {
    "uniform": method("uniform", PLAIN),
    "dynamic": method("uniform", FILL),
    "two_stage": method("uniform", PLAIN | STAGES),
    "difficulty_pools": method("difficulty_pools", FILL),
    "ads": method(ADS, FILL),
    "greso": method("greso", SIZED),
    "mopps": method("mopps", PLAIN),
    "forecast": method("forecast", PLAIN),
    "forecast_two_stage": method("forecast", PLAIN | STAGES),
    # One factor at a time: what is drawn without refills, and fewer prompts in a step.
    "difficulty_pools_plain": method("difficulty_pools", PLAIN),
    "ads_plain": method(ADS, PLAIN),
    "uniform_half": method("uniform", PLAIN, prompts_per_step=16),
    "forecast_half": method("forecast", PLAIN | STAGES, prompts_per_step=16),
}
"""The others are compared with the first two; forecast_two_stage is as in the demo."""


@dataclass(frozen=True)
class Task:
    """A configuration, what is changed in it, the held-out accuracies to reach, and how it is measured by default."""

    base: str
    changes: Row
    targets: tuple[float, ...]
    budget: int
    """Completions after which a run is given up."""
    methods: tuple[str, ...] = ("uniform", "dynamic", "forecast_two_stage")
    seeds: int = 5
    measured: Row = field(default_factory=lambda: {"eval_every": 2, "eval_prompts": 128, "eval_samples": 4})
    """When and on how much of the dev split."""


TASKS: dict[str, Task] = {
    "demo": Task("demo.yaml", {}, (0.5, 0.6, 0.7), 14_000, tuple(METHODS)),
    "three_digits": Task("demo.yaml", {"data": {"source": {"levels": 3}}}, (0.4, 0.5, 0.6), 16_000),
    "mostly_right": Task("demo.yaml", {"data": {"source": {"forget": 0.3}}}, (0.8, 0.85, 0.9), 8_000),
    "smollm2": Task(
        "smollm2.yaml",
        {"threads": 1, "data": {"splits": {"sft": 0.15, "train": 0.45, "dev": 0.2, "test": 0.2}}},
        (0.3, 0.4, 0.45),
        6_400,
        seeds=3,
        measured={"eval_every": 4, "eval_prompts": 120, "eval_samples": 2},
    ),
}
