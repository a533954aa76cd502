"""Tables and single figures of cases that were measured several ways. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from tests.benchmarks.section import Row, Rows
from tests.benchmarks.spread import spread, table

SPEED, MEMORY = "speed", "memory of "


@dataclass(frozen=True)
class Sides:
    """Ways by the names that rows have for them, with the names that readers get: ours first, then the peers."""

    titles: Mapping[str, str]

    @property
    def ours(self) -> str:
        return next(iter(self.titles))

    @property
    def others(self) -> list[str]:
        return list(self.titles)[1:]


def rates(row: Row, way: str) -> list[float]:
    """Tokens a second of every round; none where that way was not measured."""
    found = row.get("rounds", {}).get(way, {"tokens": [], "cpu_s": []})
    return [tokens / seconds for tokens, seconds in zip(found["tokens"], found["cpu_s"], strict=True)]


def ratios(row: Row, ours: str, theirs: str) -> list[float]:
    """How many times as fast, round by round: the two stood next to each other."""
    return [a / b for a, b in zip(rates(row, ours), rates(row, theirs), strict=False)]


def speed_table(rows: Rows, sides: Sides) -> str:
    """A line for every case that was measured, and the reason for one that could not be; ways that were."""
    others = [way for way in sides.others if any(rates(row, way) for row in rows.values())]
    heads = [f"{sides.titles[sides.ours]}, tokens/s"]
    for way in others:
        heads += [f"{sides.titles[way]}, tokens/s", "times"]
    lines = []
    for cell, row in rows.items():
        case, _, what = cell.partition(": ")
        if what != SPEED:
            continue
        if "skipped" in row:
            lines.append([case, row["skipped"], *[""] * (len(heads) - 1)])
            continue
        line = [case, spread(rates(row, sides.ours), 0)]
        for way in others:
            line += [spread(rates(row, way), 0), spread(ratios(row, sides.ours, way))]
        lines.append(line)
    return table(["case", *heads], lines)


def memory_table(rows: Rows, sides: Sides) -> str:
    """Peak memory above the loaded model, a line for every case that has it of our way."""
    cases = list(dict.fromkeys(cell.partition(": ")[0] for cell in rows))
    others = [way for way in sides.others if any(peak(rows, case, way) is not None for case in cases)]
    heads = [f"{sides.titles[sides.ours]}, MB"]
    for way in others:
        heads += [f"{sides.titles[way]}, MB", "share"]
    lines = []
    for case in cases:
        ours = peak(rows, case, sides.ours)
        if ours is None:
            continue
        line = [case, f"{ours:,.0f}"]
        for way in others:
            theirs = peak(rows, case, way)
            line += ["-", "-"] if theirs is None else [f"{theirs:,.0f}", f"{ours / theirs:.2f}"]
        lines.append(line)
    return table(["case", *heads], lines)


def peak(rows: Rows, case: str, way: str) -> float | None:
    """MB above the loaded model; None where it was not measured."""
    return rows.get(f"{case}: {MEMORY}{way}", {}).get("peak_mb")


def figures(rows: Rows, sides: Sides, cells: Iterable[str]) -> dict[str, str]:
    """Both tables in the order of ``cells``; for sentences the median ratio of every case to every peer, and the share
    of memory.

    ``ratio_CASE`` is that to the last of the peers, TRL; ``ratio_CASE_PEER`` those to all of them.
    """
    rows = {cell: rows[cell] for cell in cells if cell in rows}  # a result file has them by name
    found = {"speed": speed_table(rows, sides), "memory": memory_table(rows, sides)}
    for cell, row in rows.items():
        case, _, what = cell.partition(": ")
        if what != SPEED:
            continue
        for way in sides.others:
            if times := ratios(row, sides.ours, way):
                found[f"ratio_{key(case)}_{key(way)}"] = found[f"ratio_{key(case)}"] = f"{median(times):.1f}"
    for case in dict.fromkeys(cell.partition(": ")[0] for cell in rows):
        ours = peak(rows, case, sides.ours)
        for way in sides.others:
            if ours is not None and (theirs := peak(rows, case, way)) is not None:
                found[f"memory_{key(case)}_{key(way)}"] = f"{ours / theirs:.2f}"
    return found


def key(name: str) -> str:
    """A name that a mark in a page can hold."""
    return "_".join("".join(letter if letter.isalnum() else " " for letter in name).split())
