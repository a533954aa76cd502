"""Runs that work: the demo's model and task, made short, under several recipes and schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.config.reading import merge

LR = 2e-4
STEPS = 40
EVAL_EVERY = 5
SETS = ("carries", "comparison", "layout", "names")
BASE: dict[str, Any] = {
    "schedule": {"kind": "uniform"},
    "rollout": {"dynamic_sampling": None, "two_stage": None},
    "learner": {"lr": LR, "warmup": 10},
    "train": {
        "steps": STEPS,
        "prompts_per_step": 8,
        "eval_every": EVAL_EVERY,
        "eval_prompts": 48,
        "eval_samples": 4,
        "checkpoint_every": 10,
        "keep_pairs": 0,
    },
    "health": {"enabled": False, "responses": {"enabled": False}, "canaries": dict.fromkeys(SETS)},
}
"""Over the demo's settings, for every run; small enough for forty seconds of a core. The rules are tried without probe
sets, which would answer for them."""


@dataclass(frozen=True)
class Healthy:
    """A recipe of `configs/recipes` and settings over it."""

    recipe: str
    changes: dict[str, Any] = field(default_factory=dict)

    def settings(self, seed: int, *above: dict[str, Any], base: Mapping[str, Any] = BASE) -> dict[str, Any]:
        """All settings that differ from the ground's configuration and recipe."""
        tree: dict[str, Any] = {**base, "seed": seed}
        for changes in (self.changes, *above):
            tree = merge(tree, changes)
        return tree


_ADS = {"kind": "ads", "window": 2, "active": 4, "move": "outside", "min_prob": 0.5}

HEALTHY: dict[str, Healthy] = {
    "dapo_uniform": Healthy("dapo"),
    "dapo_ads": Healthy("dapo", {"schedule": _ADS}),
    "dapo_pools": Healthy("dapo", {"schedule": {"kind": "difficulty_pools"}}),
    "dapo_forecast": Healthy("dapo", {"schedule": {"kind": "forecast"}, "rollout": {"two_stage": {"first": 4}}}),
    "dapo_dynamic": Healthy("dapo", {"rollout": {"dynamic_sampling": {"max_attempts": 3}}}),
    "dapo_two_updates": Healthy("dapo", {"learner": {"updates_per_step": 2}}),
    "dapo_long": Healthy("dapo", {"learner": {"lr": 1.5 * LR}, "train": {"steps": 2 * STEPS}}),
    "dapo_plateau": Healthy("dapo"),
    "grpo": Healthy("grpo"),
    "dr_grpo": Healthy("dr_grpo"),
    "gspo": Healthy("gspo"),
    "cispo": Healthy("cispo"),
}
"""The first is what faults are planted in. `dapo_long` ends with very little entropy, and `dapo_plateau` starts from a
checkpoint that no recipe brings far: both are as they should be."""
