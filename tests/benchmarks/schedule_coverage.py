"""Share of the prompts that an epoch of ADS draws, by move and by how solvable the data are: `python -m` this module.

Simulated with the schedule itself and Bernoulli completions; no model. The published setting (2606.22305) is the
default: 17.4k prompts in 64 clusters of 272, windows of 32, 4 active clusters, 136 draws, groups of 8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from components.config.scheduling import AdsSchedule
from components.scheduling import Ads
from components.types import Completion, Group, Prompt, Score

EMPTY = Completion((1,), (0.0,), "stop", "")
SOLVABILITY: dict[str, Callable[[float], float]] = {
    "all solvable": lambda _: 1.0,
    "logistic": lambda place: 1 / (1 + exp(8 * (place - 0.5))),
    "none solvable": lambda _: 0.0,
}
"""Relative rank in the cluster, 0 the easiest -> chance that a completion is right."""


def epoch(
    move: str,
    solvable: Callable[[float], float],
    seed: int,
    *,
    clusters: int = 64,
    size: int = 272,
    window: int = 32,
    draws: int = 136,
    group: int = 8,
) -> dict[str, float]:
    """The schedule's metrics after one epoch."""
    ranked = {k: [Prompt(f"{k}-{i}", "", "", "", difficulty=i / size) for i in range(size)] for k in range(clusters)}
    settings = AdsSchedule.model_validate({"window": window, "active": 4, "move": move})
    schedule, rng = Ads(ranked, settings, seed), np.random.default_rng(seed)
    for _ in range(draws):
        drawn = schedule.next(4 * window)
        rights = rng.binomial(group, [solvable(prompt.difficulty) for prompt in drawn])
        schedule.observe([_answered(*pair, group) for pair in zip(drawn, rights.tolist(), strict=True)])
    return schedule.metrics()


def _answered(prompt: Prompt, right: int, group: int) -> Group:
    return Group(prompt, (1,), (EMPTY,) * group, tuple(Score(float(g < right)) for g in range(group)))


def main(seeds: Sequence[int] = (0, 1, 2)) -> None:
    """Print the table: means over seeds."""
    shown = Table("move", "data", "prompts drawn", "reached", "in the band at the end", title="one epoch of ADS")
    for move in ("adjacent", "outside"):
        for name, solvable in SOLVABILITY.items():
            rows: list[dict[str, Any]] = [epoch(move, solvable, seed) for seed in seeds]
            shown.add_row(
                move, name, *(f"{fmean(r[key] for r in rows):.1%}" for key in ("coverage", "reached", "in_band"))
            )
    Console().print(shown)


if __name__ == "__main__":
    main()
