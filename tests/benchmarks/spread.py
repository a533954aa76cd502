"""Medians, spreads, and the exponent of a cost curve."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np


def spread(values: Sequence[float], digits: int = 2, unit: str = "") -> str:
    """Median with least and largest: ``1.30 s (1.21 to 1.44)``; the value alone where there is one."""
    if not values:
        return "-"
    middle = f"{median(values):,.{digits}f}{unit}"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def exponent(sizes: Sequence[float], costs: Sequence[float], floor: float = 0.0) -> float:
    """Slope of log cost over log size by least squares: 1 is linear, 0 is no growth.

    Args:
        floor: Costs at or below it are left out: what is too short to be measured has no slope.
    """
    points = [(size, cost) for size, cost in zip(sizes, costs, strict=True) if size > 0 and cost > floor]
    if len(points) < 2:
        return float("nan")
    x, y = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)
