"""Tables: completions and processor time that each method needs to reach an accuracy, against the first two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from tests.benchmarks.schedules.calibration import tables
from tests.benchmarks.schedules.methods import METHODS, TASKS, Row

Curve = list[tuple[float, float, float]]
"""Completions sampled so far, held-out accuracy at that point, and processor seconds so far."""
RESAMPLES = 10_000
COMPLETIONS, SECONDS = 0, 2
HEAD = (
    *("held-out pass@1", "method", "seeds", "not reached", "completions", "of uniform's", "of dynamic's"),
    *("processor time, of uniform's", "groups without gradient", "pass@1 at the end"),
)


def reached_at(curve: Iterable[Sequence[float]], target: float, axis: int = COMPLETIONS) -> float | None:
    """Where on an axis the mean of two successive measurements crosses ``target``; None where it does not.

    Between measurements the mean is taken to be linear. Two of them, so that one lucky measurement is not enough.
    """
    smooth = [((a[axis] + b[axis]) / 2, (a[1] + b[1]) / 2) for a, b in pairwise(curve)]
    for place, (spent, accuracy) in enumerate(smooth):
        if accuracy >= target:
            if place == 0:
                return spent
            before, low = smooth[place - 1]
            return before + (spent - before) * (target - low) / (accuracy - low)
    return None


def ratio(mine: Sequence[float], base: Sequence[float]) -> tuple[float, float, float]:
    """Sum of ``mine`` over sum of ``base``, paired by seed, with its 95 % bootstrap interval over seeds.

    Five seeds are few: percentile intervals of so few pairs are too narrow rather than too wide.
    """
    pairs = np.array([mine, base], dtype=float)
    chosen = np.random.default_rng(0).integers(pairs.shape[1], size=(RESAMPLES, pairs.shape[1]))
    sums = pairs[:, chosen].sum(-1)
    low, high = np.percentile(sums[0] / sums[1], [2.5, 97.5])
    return float(pairs[0].sum() / pairs[1].sum()), float(low), float(high)


def figures(rows: Sequence[Row]) -> dict[str, str]:
    """A table for each task that was measured, and one of the forecasts."""
    by_task = {task: [row for row in rows if row["task"] == task] for task in TASKS}
    found = {task: table(mine) for task, mine in by_task.items() if mine}
    forecasts = {task: [row["forecast"] for row in mine if row.get("forecast")] for task, mine in by_task.items()}
    known = {task: mine for task, mine in forecasts.items() if mine}
    return found | ({"forecasts": tables(known)} if known else {})


def table(rows: Sequence[Row]) -> str:
    """Markdown for the rows of one task, one line a target and method. A run that never reached the target counts with
    its budget, and in no ratio where the other missed it, too."""
    whole = [row for row in rows if "failed" not in row]
    lines = [
        f"{row['method']}, seed {row['seed']} failed: {row['failed'].splitlines()[0]}"
        for row in rows
        if "failed" in row
    ]
    lines += ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    for target in TASKS[rows[0]["task"]].targets:
        spent = {name: _spent(whole, name, target, COMPLETIONS) for name in METHODS}
        times = {name: _spent(whole, name, target, SECONDS) for name in METHODS}
        for name, by_seed in spent.items():
            if by_seed:
                dead = np.mean([row["dead"] for row in whole if row["method"] == name])
                missed = sum(missed for _, missed in by_seed.values())
                mean = np.mean([value for value, _ in by_seed.values()])
                cells = [str(len(by_seed)), str(missed), f"{mean:,.0f}"]
                cells += [_against(by_seed, spent[base]) for base in ("uniform", "dynamic")]
                cells += [_against(times[name], times["uniform"]), f"{dead:.0%}", f"{_last(whole, name):.0%}"]
                lines.append(f"| {target:.0%} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


Spent = Mapping[int, tuple[float, bool]]


def _spent(rows: Sequence[Row], name: str, target: float, axis: int) -> Spent:
    """Seed -> what was spent until the target, and whether that is all that was spent because it was missed."""
    found = {}
    for row in rows:
        if row["method"] == name:
            at, most = reached_at(row["curve"], target, axis), row["sampled"] if axis == COMPLETIONS else row["seconds"]
            found[row["seed"]] = (most if at is None else at, at is None)
    return found


def _last(rows: Sequence[Row], name: str) -> float:
    """Mean of the last two measurements, over seeds; a run ends where it has reached the largest target."""
    return float(np.mean([[accuracy for _, accuracy, _ in row["curve"][-2:]] for row in rows if row["method"] == name]))


def _against(mine: Spent, base: Spent) -> str:
    """The ratio over the seeds of which at least one of both reached the target, with its interval."""
    seeds = [seed for seed in sorted(mine.keys() & base.keys()) if not (mine[seed][1] and base[seed][1])]
    if mine is base or not seeds:
        return "-"
    found, low, high = ratio([mine[seed][0] for seed in seeds], [base[seed][0] for seed in seeds])
    return f"{found:.0%} ({low:.0%} to {high:.0%})"
