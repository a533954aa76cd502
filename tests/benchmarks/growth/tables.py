"""Figures of cost curves, made of rows: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan

from tests.benchmarks.growth.curve import FAMILIES, UNITS, Cost, Curve, label
from tests.benchmarks.section import Rows
from tests.benchmarks.spread import exponent, table

STEEP = 1.1
"""An exponent above it, of all sizes or of the last two, is a growth faster than linear, and has to be explained."""
FLAT = 0.5
"""Below it a cost is none of single items, and is not divided by their number."""
UNEXPLAINED = "**not explained**"
TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
SPACE = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


@dataclass(frozen=True)
class Measured:
    """A cost at all sizes at which it was measured, in seconds or bytes."""

    name: str
    curve: Curve
    cost: Cost
    points: Mapping[int, float]

    @property
    def scale(self) -> tuple[tuple[float, str], ...]:
        return TIME if self.cost.unit in ("s", "ms") else SPACE

    @property
    def exponent(self) -> float:
        """Over all sizes; NaN where fewer than two points are above the floor."""
        return self._slope(list(self.points))

    @property
    def last(self) -> float:
        """Between the two largest sizes, where a fit over all of them hides what begins there."""
        return self._slope(list(self.points)[-2:])

    @property
    def steep(self) -> bool:
        return self.exponent > STEEP or self.last > STEEP

    def _slope(self, sizes: list[int]) -> float:
        floor = self.cost.least * UNITS[self.cost.unit]
        return exponent(sizes, [self.points[size] for size in sizes], floor)


def figures(curves: Mapping[str, Curve], rows: Rows) -> dict[str, str]:
    """A table a family (``prompts``), ``verdicts``, ``plain_tools``, and single figures: ``ads_draw_1e6`` is a cost at
    a size, ``ads_draw_exponent`` how it grows, ``ads_draw_last_exponent`` between the two largest sizes,
    ``data_rows_per_s_1e6`` any other field of a row; ``steep`` is the exponent from which on a growth is explained.
    """
    found = list(measured(curves, rows))
    tables = {family: by_size(family, [one for one in found if one.curve.family == family]) for family in FAMILIES}
    singles = {"steep": f"{STEEP}"}
    for one in found:
        singles[f"{one.name}_{one.cost.name}_exponent"] = say_exponent(one.exponent)
        singles[f"{one.name}_{one.cost.name}_last_exponent"] = say_exponent(one.last)
        for size, value in one.points.items():
            singles[f"{one.name}_{one.cost.name}_{label(size)}"] = amount(value, one.scale)
    rates = {
        f"{name}_rows_per_s_{label(size)}": f"{row['rows_per_s']:,.0f}"
        for name, curve in curves.items()
        for size, row in of_curve(name, curve, rows)
        if "rows_per_s" in row
    }
    texts = {"verdicts": verdicts(found), "plain_tools": plain_tools(curves, rows), "skipped": left_out(curves, rows)}
    return {**tables, **texts, **singles, **rates}


def of_curve(name: str, curve: Curve, rows: Rows) -> Iterator[tuple[int, Mapping[str, float]]]:
    """Sizes and what was measured at them; what was skipped is left out."""
    for size in curve.sizes:
        row = rows.get(f"{name} {label(size)}", {}).get(name, {})
        if row and "skipped" not in row:
            yield size, row


def measured(curves: Mapping[str, Curve], rows: Rows) -> Iterator[Measured]:
    """Every cost of every curve that has at least one point."""
    for name, curve in curves.items():
        for cost in curve.costs:
            unit = UNITS[cost.unit]
            points = {size: unit * row[cost.field] for size, row in of_curve(name, curve, rows) if cost.field in row}
            if points:
                yield Measured(name, curve, cost, points)


def by_size(family: str, found: list[Measured]) -> str:
    """A line a cost: at each size, both exponents, and at the largest size for one of what is counted."""
    if not found:
        return "Not measured."
    sizes = sorted({size for one in found for size in one.points})
    head = ["", "", *(f"{size:,}" for size in sizes), "exponent", "of the last two", f"a {FAMILIES[family]}"]
    lines, before = [], ""
    for one in found:
        largest = max(one.points)
        cells = [amount(one.points[size], one.scale) if size in one.points else "-" for size in sizes]
        each = amount(one.points[largest] / largest, one.scale) if one.exponent >= FLAT else "-"
        title = one.curve.title if one.curve.title != before else ""
        lines.append([title, one.cost.what, *cells, say_exponent(one.exponent), say_exponent(one.last), each])
        before = one.curve.title
    return table(head, lines)


def verdicts(found: list[Measured]) -> str:
    """Costs that grow faster than their size, over all sizes or between the last two, and why."""
    steep = [one for one in found if one.steep]
    fitted = sum(not isnan(one.exponent) for one in found)
    if not steep:
        return f"None of the {fitted} costs that have an exponent grows faster than linearly (exponent above {STEEP})."
    lines = [
        [
            f"{one.curve.title}: {one.cost.what}",
            say_exponent(one.exponent),
            say_exponent(one.last),
            one.cost.why or UNEXPLAINED,
        ]
        for one in steep
    ]
    return table(["grows faster than linearly", "all sizes", "last two", "why"], lines)


def plain_tools(curves: Mapping[str, Curve], rows: Rows) -> str:
    """Costs compared with those of plain tools for the same bytes, with MB/s; a ratio above 1 is slower than the
    tool."""
    lines = []
    for name, curve in curves.items():
        whats = {cost.field: cost.what for cost in curve.costs}
        for own, other, whose in curve.plain_tools:
            for size, row in of_curve(name, curve, rows):
                speeds = [f"{row[field]:.2f} s ({size / row[field]:,.0f} MB/s)" for field in (own, other)]
                lines.append(
                    [curve.title, whats[own], f"{size:,}", speeds[0], whose, speeds[1], ratio(row, own, other)]
                )
    head = ["registry", "", "MB", "Evenkeel", "plain tool", "", "ratio"]
    return table(head, lines) if lines else "Not measured."


def ratio(row: Mapping[str, float], own: str, other: str) -> str:
    return f"{row[own] / row[other]:.2f}"


def left_out(curves: Mapping[str, Curve], rows: Rows) -> str:
    """Cells that could not be measured, and why."""
    cells = [(f"{name} {label(size)}", name) for name, curve in curves.items() for size in curve.sizes]
    reasons = [(cell, rows.get(cell, {}).get(name, {}).get("skipped")) for cell, name in cells]
    return "; ".join(f"{cell}: {reason}" for cell, reason in reasons if reason) or "nothing"


def amount(value: float, scale: tuple[tuple[float, str], ...]) -> str:
    """Three digits and a unit."""
    unit, name = next((step for step in scale if value >= step[0]), scale[-1])
    scaled = value / unit
    return f"{scaled:,.0f} {name}" if scaled >= 100 or name == "B" else f"{scaled:.3g} {name}"


def say_exponent(value: float) -> str:
    return "-" if isnan(value) else f"{round(value, 2) + 0.0:.2f}"  # never -0.00
