"""When a curve reaches a target and stays there, and the tables of it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tests.benchmarks.accuracy.clock import PHASES, REST
from tests.benchmarks.section import Row, Rows
from tests.benchmarks.spread import spread, table

TARGET = 0.6
"""Held-out pass@1, from about 0.35 at the start; the plateau of this recipe is near 0.7."""
ARMS = {
    "trl": "TRL `GRPOTrainer`",
    "same": "Evenkeel, the same recipe",
    "own": "Evenkeel, its own recipe",
}
Point = Sequence[float]
"""Steps done, seconds, held-out pass@1."""


def reached(curve: Sequence[Point], target: float = TARGET) -> float | None:
    """Seconds of the first measurement from which on all are at least ``target``; None if the last one is below."""
    found = None
    for _, seconds, value in reversed(curve):
        if value < target:
            break
        found = seconds
    return found


def figures(rows: Rows) -> dict[str, str]:
    """Tables ``time`` and ``phases``; ``ratio_same``, ``ratio_own``, ``step_ratio`` and ``seeds`` for sentences."""
    arms = {arm: _of(rows, arm) for arm in ARMS}
    ratios = {arm: _ratios(arms["trl"], arms[arm]) for arm in ("same", "own")}
    return {
        "time": _time(arms),
        "phases": _phases(arms),
        "target": f"{TARGET:.0%}",
        "start": f"{rows['prepare']['pass_at_1']:.0%}" if "prepare" in rows else "-",
        "seeds": str(len(arms["trl"])),
        "ratio_same": spread(ratios["same"], 1),
        "ratio_own": spread(ratios["own"], 1),
        "step_ratio": spread(_step_ratios(arms["trl"], arms["same"]), 1),
    }


def _of(rows: Rows, arm: str) -> dict[str, Row]:
    """Rows of one arm by seed."""
    return {cell.split()[1]: row for cell, row in rows.items() if cell.split()[0] == arm}


def _ratios(theirs: dict[str, Row], ours: dict[str, Row]) -> list[float]:
    """TRL's time to the target over ours, seed by seed, where both reach it."""
    pairs = [(reached(theirs[seed]["curve"]), reached(ours[seed]["curve"])) for seed in theirs if seed in ours]
    return [one / other for one, other in pairs if one and other]


def _step_ratios(theirs: dict[str, Row], ours: dict[str, Row]) -> list[float]:
    return [_step(theirs[seed]) / _step(ours[seed]) for seed in theirs if seed in ours]


def _step(row: Row) -> float:
    return float(row["seconds"]) / int(row["steps"])


def _time(arms: dict[str, dict[str, Row]]) -> str:
    lines = []
    for arm, name in ARMS.items():
        rows = list(arms[arm].values())
        times = [found for row in rows if (found := reached(row["curve"])) is not None]
        ratio = "1" if arm == "trl" else spread(_ratios(arms["trl"], arms[arm]), 1)
        lines.append(
            [
                name,
                f"{len(times)} of {len(rows)}",
                spread(times, 1, " s"),
                ratio,
                spread([_step(row) for row in rows], 2, " s"),
                spread([row["completions"] / row["steps"] for row in rows], 0),
                spread([100 * row["curve"][-1][2] for row in rows], 0, " %"),
            ]
        )
    head = ["", f"seeds at {TARGET:.0%}", "time to it", "ratio", "a step", "completions a step", "pass@1 at the end"]
    return table(head, lines)


def _phases(arms: dict[str, dict[str, Row]]) -> str:
    """Milliseconds of a step, medians over seeds."""
    names = [*PHASES, REST]
    lines = []
    for arm, name in ARMS.items():
        rows = arms[arm].values()
        spent = [[1000 * row["phases_s"][phase] / row["steps"] for row in rows] for phase in names]
        lines.append([name, *(f"{median(values):,.0f}" if values else "-" for values in spent)])
    return table(["ms a step", *names], lines)
