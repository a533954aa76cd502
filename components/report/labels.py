"""Labels at the right edge of a plot, in data order and never on top of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from components.report.palette import LIGHT

LABEL_GAP = 0.125
"""Least distance of two labels, in heights of the axes."""


@dataclass(frozen=True)
class Label:
    height: float
    text: str
    colour: str


def height(axes: Axes, value: float) -> float:
    """Height of a value within the axes, 0 at the bottom and 1 at the top."""
    inside = (axes.transScale + axes.transLimits).transform((0.0, value))
    return float(min(1.0, max(0.0, inside[1])))


def spread(labels: Sequence[Label]) -> list[Label]:
    """Move labels apart, as little as needed, so that none covers another; their order stays."""
    ordered = sorted(labels, key=lambda label: label.height)
    heights: list[float] = []
    for label in ordered:
        heights.append(max(label.height, heights[-1] + LABEL_GAP) if heights else label.height)
    excess = max(0.0, heights[-1] - 1.0) if heights else 0.0
    for index in range(len(heights) - 1, -1, -1):
        ceiling = heights[index + 1] - LABEL_GAP if index + 1 < len(heights) else heights[index] - excess
        heights[index] = min(heights[index], ceiling)
    return [Label(height, label.text, label.colour) for height, label in zip(heights, ordered, strict=True)]


def write(axes: Axes, labels: Sequence[Label]) -> None:
    """Put them next to the axes."""
    for label in spread(labels):
        axes.text(1.015, label.height, label.text, color=LIGHT[label.colour], transform=axes.transAxes, va="center")
