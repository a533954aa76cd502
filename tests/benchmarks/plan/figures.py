"""Tables of what is planned and what was measured. The plan is made when the page is."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from transformers import LlamaConfig

from components.config.policy import LoraSettings
from components.planning.passes import Process
from components.planning.processes import IMPORTED, processes_of
from components.planning.shapes import Shape, shape_of
from tests.benchmarks.plan import TITLES, parts_of
from tests.benchmarks.plan.cases import Size, load_of, settings_of
from tests.benchmarks.section import Row, Rows
from tests.benchmarks.spread import table

MOMENTS = ("start", "sample", "update", "hand-over", "checkpoint")
MB = 1e6


@cache
def shape(size: Size, lora: LoraSettings | None) -> Shape:
    """Of a policy; an adapter of one is made in seconds, and many cells share it."""
    return shape_of(LlamaConfig(**size.config), lora)


def planned(cell: str) -> list[Process]:
    """The processes of a cell, rank by rank."""
    size, kind, way, _ = parts_of(cell)
    settings = settings_of(size, kind, way == "lora", Path())
    return processes_of(settings, shape(size, settings.policy.lora), load_of(size, kind))


def measured(rank: Row) -> tuple[float, str]:
    """MB of the peak of one rank, and its moment."""
    return max((float(rank[moment]), moment) for moment in MOMENTS if moment in rank)


def tables(rows: Rows) -> dict[str, str]:
    """A line for every process, and the largest misses."""
    found, misses = {}, dict[str, list[float]]()
    for name in dict.fromkeys(parts_of(cell)[3] for cell in rows):
        lines = []
        for cell, row in rows.items():
            size, kind, way, malloc = parts_of(cell)
            if malloc != name:
                continue
            for number, (process, rank) in enumerate(zip(planned(cell), row["ranks"], strict=True)):
                plan, (peak, moment) = process.peak(), measured(rank)
                share = ((plan.size - IMPORTED) / MB) / peak - 1
                misses.setdefault(name, []).append(share)
                lines.append(
                    [
                        size.name,
                        kind,
                        TITLES[way],
                        str(number),
                        f"{(plan.size - IMPORTED) / MB:,.0f} ({plan.moment})",
                        f"{peak:,.0f} ({moment})",
                        f"{100 * share:+.0f} %",
                    ]
                )
        head = ["policy", "learner", "trained", "rank", "planned, MB", "measured, MB", "miss"]
        found[f"table_{name}"] = table(head, lines)
    for name, shares in misses.items():
        found[f"worst_{name}"] = f"{100 * max(map(abs, shares)):.0f} %"
        within = sum(abs(share) <= 0.15 for share in shares)
        found[f"within_{name}"] = f"{within} of {len(shares)}"
    return found
