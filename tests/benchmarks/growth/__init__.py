"""How cost grows with size: cost curves with the exponents of their growth.

- `curve` — what a curve is: sizes, what is measured at each, and why a cost grows faster than its size where it does
- `measures` — processor time, peaks of memory
- `curves` — all of them, by name; `tables` — the figures
- over prompts: `schedules`, `data`, `clusters`
- over steps: `monitor`, `logs`, `audits`, `reports`
- over megabytes of a checkpoint: `folder`, `bucket`; `checkpoints` makes them
- over pods: `manifests`, `pods`

A module is loaded by every cell, so what it measures is imported where it is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.growth.curve import label
from tests.benchmarks.growth.curves import CURVES
from tests.benchmarks.growth.tables import figures
from tests.benchmarks.section import Row, Rows, Scale, Section


class Growth(Section):
    """A cell is a curve at one size, ``ads 1e6``; its row maps the curve's name to what was measured."""

    title = "Growth with prompts, steps, checkpoints and pods"
    limit = 900.0

    def cells(self, scale: Scale) -> Sequence[str]:
        return list(_cells(scale))

    def measure(self, cell: str, scale: Scale, folder: Path) -> Row:
        return {name: CURVES[name].measure(size, folder) for name, size in _cells(scale)[cell]}

    def figures(self, rows: Rows) -> dict[str, str]:
        return figures(CURVES, rows)


def _cells(scale: Scale) -> dict[str, list[tuple[str, int]]]:
    """What each cell measures. Loading torch takes longer than anything small, so that a smoke run is one process."""
    if scale == "smoke":
        return {"everything": [(name, curve.smoke) for name, curve in CURVES.items()]}
    return {f"{name} {label(size)}": [(name, size)] for name, curve in CURVES.items() for size in curve.sizes}
