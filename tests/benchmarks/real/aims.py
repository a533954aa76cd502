"""Tables of the section, and its figures against the aims. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from tests.benchmarks.accuracy import reached
from tests.benchmarks.micro.figures import MEMORY, SPEED, Sides, ratios, speed_table
from tests.benchmarks.section import Row, Rows
from tests.benchmarks.spread import spread, table

SAMPLERS = Sides({"engine": "engine", "generate": "`transformers.generate`"})
SINGLE = Sides({"ours": "learner, fp32", "trl": "TRL, fp32"})
HALF = Sides({"ours bf16": "learner, bf16", "trl bf16": "TRL, bf16", "trl": "TRL, fp32"})
UPDATERS = {"fp32": SINGLE, "bf16": HALF}
"""By the precision of a case."""
TARGET = 0.4
"""Held-out pass@1, from about a fifth at the start."""


class Aim(NamedTuple):
    """A bound of the median of what was measured."""

    what: str
    bound: float
    measured: Sequence[float]
    at_most: bool = False

    @property
    def missed(self) -> bool:
        middle = median(self.measured)
        return middle > self.bound if self.at_most else middle < self.bound


def figures(rows: Rows) -> dict[str, str]:
    """`FIGURES`: tables, and what sentences hold."""
    skip = next((str(row["skipped"]) for row in rows.values() if "skipped" in row), "")
    measured = {cell: row for cell, row in rows.items() if "skipped" not in row}
    if not measured:
        return dict.fromkeys(FIGURES, skip or "not measured")
    aims = [aim for aim in aims_of(measured) if aim.measured]
    training = reached.figures(measured, TARGET)
    return {
        "sampling": speed_table(_of(measured, SAMPLERS), SAMPLERS),
        "update": speed_table(_of(measured, SINGLE), SINGLE),
        "update_bf16": speed_table(_of(measured, HALF), HALF),
        "memory": memory_table(measured),
        "time": training["time"],
        "phases": training["phases"],
        "start": training["start"],
        "target": training["target"],
        "ratio_same": training["ratio_same"],
        "ratio_own": training["ratio_own"],
        "aims": aims_table(aims),
        "missed": "; ".join(aim.what for aim in aims if aim.missed) or "none",
    }


_SPEEDS, _TRAINING = ("sampling", "update", "update_bf16", "memory"), ("time", "phases", "start", "target")
FIGURES = (*_SPEEDS, *_TRAINING, "ratio_same", "ratio_own", "aims", "missed")
"""Names of all figures: where nothing could be measured each of them is the reason."""


def aims_of(rows: Rows) -> Iterable[Aim]:
    """Every aim with its measurements; those that could not be made have none."""
    for cell, row in _of(rows, SAMPLERS).items():
        yield Aim(_case(cell), 2.0, ratios(row, "engine", "generate"))
    for sides in UPDATERS.values():
        for cell, row in _of(rows, sides).items():
            for other in sides.others:
                named = f"{_case(cell)}, against {sides.titles[other]}"
                yield Aim(named, 2.5, ratios(row, sides.ours, other))
                yield Aim(f"memory of that {named}", 0.6, _share(rows, cell, sides.ours, other), at_most=True)
    yield Aim("time to accuracy, the same recipe", 2.0, reached.ratios(rows, "same", TARGET))
    yield Aim("time to accuracy, its own recipe", 4.0, reached.ratios(rows, "own", TARGET))


def aims_table(aims: Sequence[Aim]) -> str:
    lines = []
    for aim in aims:
        bound = f"at most {aim.bound:g}" if aim.at_most else f"at least {aim.bound:g}"
        lines.append([aim.what, bound, spread(aim.measured), "missed" if aim.missed else "reached"])
    return table(["", "aim", "measured", ""], lines)


def memory_table(rows: Rows) -> str:
    """Peak of the process of each way, and what of it is above the loaded model."""
    lines = []
    for cell, row in rows.items():
        case, _, what = cell.partition(": ")
        if what.startswith(MEMORY):
            way = what.removeprefix(MEMORY)
            lines.append([case, _title(way), f"{row['loaded_mb'] + row['peak_mb']:,.0f}", f"{row['peak_mb']:,.0f}"])
    return table(["case", "", "peak of the process, MB", "above the loaded model, MB"], lines)


def _share(rows: Rows, cell: str, ours: str, theirs: str) -> list[float]:
    """The peak of our process over that of theirs, where both were measured; TRL's in fp32 is that of the fp32 case."""
    case = _case(cell)
    other = case if "bf16" in theirs else case.replace("bf16", "fp32")
    found = [rows.get(f"{case}: {MEMORY}{ours}"), rows.get(f"{other}: {MEMORY}{theirs}")]
    peaks = [row["loaded_mb"] + row["peak_mb"] for row in found if row is not None]
    return [peaks[0] / peaks[1]] if len(peaks) == 2 else []


def _of(rows: Rows, sides: Sides) -> dict[str, Row]:
    """Rows of speed that have our way of these sides."""
    return {cell: row for cell, row in rows.items() if sides.ours in row.get("rounds", {}) and cell.endswith(SPEED)}


def _title(way: str) -> str:
    return {**SAMPLERS.titles, **SINGLE.titles, **HALF.titles}[way]


def _case(cell: str) -> str:
    return cell.partition(": ")[0]
