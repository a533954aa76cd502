"""What is compared, and on which tasks."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]

UNIFORM: Row = {"kind": "uniform"}
PLAIN: Row = {"dynamic_sampling": None}
FILL: Row = {"dynamic_sampling": {"max_attempts": 4}}
SIZED: Row = {"dynamic_sampling": {"max_attempts": 4, "sized": True}}
STAGES: Row = {"two_stage": {"first": 4}}
METHODS: dict[str, tuple[Row, Row]] = {
    "uniform": (UNIFORM, PLAIN),
    "dynamic": (UNIFORM, FILL),
    "sized": (UNIFORM, SIZED),
    "two_stage": (UNIFORM, PLAIN | STAGES),
    "difficulty_pools": ({"kind": "difficulty_pools"}, FILL),
    "ads": ({"kind": "ads", "window": 8, "active": 4, "move": "outside", "min_prob": 0.5}, FILL),
    "greso": ({"kind": "greso"}, SIZED),
    "mopps": ({"kind": "mopps"}, PLAIN),
    "forecast": ({"kind": "forecast"}, PLAIN),
    "forecast_two_stage": ({"kind": "forecast"}, PLAIN | STAGES),
    "forecast_filled": ({"kind": "forecast"}, SIZED | STAGES),
}
"""``schedule`` and ``rollout`` of each. The others are compared with the first two; ads is as in the demo."""

GYM: Row = {
    "chain_sum": {"weight": 2, "settings": {"min_terms": 2, "max_terms": 3, "min_digits": 1, "max_digits": 3}},
    "gcd": {},
    "letter_counting": {"settings": {"min_words": 2, "max_words": 6}},
}
TASKS: dict[str, tuple[str, Row, tuple[float, ...]]] = {
    "demo": ("demo.yaml", {}, (0.5, 0.6, 0.7)),
    "dead": ("demo.yaml", {"data": {"source": {"levels": 3}}}, (0.5, 0.6, 0.7)),
    "right": ("reasoning-gym.yaml", {}, (0.5, 0.6, 0.7)),
}
"""A configuration, what is changed in it, and the held-out accuracies to reach."""
