"""The table: held-out success of both methods over the episodes played."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

Row = dict[str, Any]
HEAD = ("method", "seeds", "start", "after 1,024 episodes", "2,048", "2,560", "turns at the end", "processor time")
AT = (0, 1024, 2048, 2560)
RESAMPLES = 10_000


def figures(rows: Sequence[Row]) -> dict[str, str]:
    """`doors`, a line a method and one of the difference paired by seed; nothing where nothing was measured."""
    methods = {name: {row["seed"]: row for row in rows if row["method"] == name} for name in ("grpo", "ppo")}
    seeds = sorted(methods["grpo"].keys() & methods["ppo"].keys())
    if not seeds:
        return {}
    cost = fmean(methods["grpo"][seed]["seconds"] for seed in seeds)
    lines = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    success = {name: np.array([_success(own[seed]) for seed in seeds]) for name, own in methods.items()}
    for name, own in methods.items():
        mine = [own[seed] for seed in seeds]
        cells = [f"{value:.0%}" for value in success[name].mean(axis=0)]
        cells += [f"{fmean(fmean(row['turns'][-8:]) for row in mine):.2f}"]
        cells += [f"{fmean(row['seconds'] for row in mine) / cost:.0%}"]
        lines.append(f"| {name} | {len(seeds)} | " + " | ".join(cells) + " |")
    apart = success["ppo"] - success["grpo"]
    cells = ["-", *(_interval(column) for column in apart.T[1:]), "-", "-"]
    lines.append(f"| ppo - grpo, points | {len(seeds)} | " + " | ".join(cells) + " |")
    return {"doors": "\n".join(lines)}


def _success(row: Row) -> list[float]:
    curve = dict(map(tuple, row["curve"]))
    return [curve[at] for at in AT]


def _interval(differences: np.ndarray) -> str:
    """The mean over seeds, with its 95 % bootstrap interval, which is too narrow for so few."""
    chosen = np.random.default_rng(0).integers(len(differences), size=(RESAMPLES, len(differences)))
    low, high = np.percentile(differences[chosen].mean(axis=1), [2.5, 97.5])
    return f"{100 * differences.mean():+.0f} ({100 * low:+.0f} to {100 * high:+.0f})"
