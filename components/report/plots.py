"""Draw one panel: lines labelled at their ends, the y axis from 0, a vertical mark where a health rule spoke."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from components.config import Settings
from components.report.palette import LIGHT
from components.report.panels import PANELS, Panel, Series
from components.report.svg import STYLE, inline
from components.types import StepRecord, Verdict
from components.words import number, percent

SIZE = (5.2, 2.05)
"""Inches. The page scales plots to its column; text in them is 8.5 points at this size."""
BOX = (0.085, 0.13, 0.65, 0.75)
"""Axes within the figure: fixed, so that panels line up and nothing depends on measured text."""
LABEL_GAP = 0.125
"""Least distance of two labels, in heights of the axes."""
LOG_FLOOR = 1e-7
"""Below it a logarithmic panel is linear down to 0, so that an exact 0 can be drawn."""
MARK_COLOURS = {"warn": "amber", "intervene": "purple", "rollback": "red", "stop": "red"}


@dataclass(frozen=True)
class Plot:
    """One drawn panel."""

    name: str
    panel: Panel
    svg: Markup


@dataclass(frozen=True)
class Label:
    height: float
    text: str
    colour: str


def draw_all(records: Sequence[StepRecord], marks: Sequence[Verdict], settings: Settings) -> list[Plot]:
    """Every panel of which at least one signal was recorded. ``marks`` are numbered from 1 in the order given."""
    drawn = []
    for name, panel in PANELS.items():
        curves = {item: curve for item in panel.series if (curve := points_of(records, item.signal))[0]}
        if curves:
            figure = draw(panel, curves, marks, settings, last_step=max(2, records[-1].step))
            drawn.append(Plot(name, panel, inline(figure, name, describe(panel, curves))))
    return drawn


def points_of(records: Sequence[StepRecord], signal: str) -> tuple[list[int], list[float]]:
    """Steps on which ``signal`` was recorded, and its values there."""
    found = [(record.step, record.signals[signal]) for record in records if signal in record.signals]
    return [step for step, _ in found], [value for _, value in found]


def describe(panel: Panel, curves: Mapping[Series, tuple[list[int], list[float]]]) -> str:
    """The plot in words, for readers who do not see it."""
    ends = [f"{item.label} {_say(panel, y[0])} to {_say(panel, y[-1])}" for item, (_, y) in curves.items()]
    return f"{panel.title} over steps: {'; '.join(ends)}"


def draw(
    panel: Panel,
    curves: Mapping[Series, tuple[list[int], list[float]]],
    marks: Sequence[Verdict],
    settings: Settings,
    last_step: int,
) -> Figure:
    """The figure of one panel."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE)
        axes = figure.add_axes(BOX)
        tops = _draw_curves(axes, panel, curves)
        limit = panel.reference.value(settings) if panel.reference else None
        _scale(axes, panel, curves, limit, last_step)
        labels = [
            Label(_height(axes, tops[item]), f"{item.label} {_say(panel, curves[item][1][-1])}", item.colour)
            for item in curves
        ]
        if panel.reference and limit is not None:
            axes.axhline(limit, color=LIGHT["muted"], linewidth=0.8, linestyle=(0, (4, 3)))
            labels.append(Label(_height(axes, limit), f"{panel.reference.label} {_say(panel, limit)}", "muted"))
        for label in spread(labels):
            axes.text(1.015, label.height, label.text, color=LIGHT[label.colour], transform=axes.transAxes, va="center")
        _draw_marks(axes, marks, last_step)
    return figure


def _draw_curves(
    axes: Axes, panel: Panel, curves: Mapping[Series, tuple[list[int], list[float]]]
) -> dict[Series, float]:
    """Draw every curve; returns the height, in data units, at which its label belongs."""
    ends = {}
    floor: dict[int, float] = {}
    for item, (x, y) in curves.items():
        colour = LIGHT[item.colour]
        if item.style == "area":
            below = [floor.get(step, 0.0) for step in x]
            top = [low + value for low, value in zip(below, y, strict=True)]
            axes.fill_between(x, below, top, color=colour, alpha=0.35, linewidth=0)
            axes.plot(x, top, color=colour, linewidth=1.1)
            floor |= dict(zip(x, top, strict=True))
            ends[item] = (below[-1] + top[-1]) / 2
            continue
        marker = "o" if item.style == "marks" or len(x) == 1 else ""
        axes.plot(x, y, color=colour, linewidth=1.2, marker=marker, markersize=3.2)
        ends[item] = y[-1]
    return ends


def _scale(
    axes: Axes,
    panel: Panel,
    curves: Mapping[Series, tuple[list[int], list[float]]],
    limit: float | None,
    last_step: int,
) -> None:
    """Axes limits and ticks: x is the same in every panel; y starts at 0, or below it for a signed signal."""
    values = [value for _, y in curves.values() for value in y] + ([] if limit is None else [limit])
    axes.set_xlim(0, last_step)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.text(1.015, -0.095, "step", color=LIGHT["muted"], transform=axes.transAxes, va="center")
    if panel.log:
        axes.set_yscale("symlog", linthresh=LOG_FLOOR)
        axes.set_ylim(0, max(1.0, *values))
        axes.set_yticks([0, 1e-6, 1e-4, 1e-2, 1], ["0", "10⁻⁶", "10⁻⁴", "0.01", "1"])
        axes.minorticks_off()
    else:
        low = min(0.0, *values) if panel.signed else 0.0
        least = 0.02 if panel.unit == "%" else 1e-9
        axes.set_ylim(low, 1.0 if panel.full else max(*values, low + least, 0.0) * 1.08)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        if panel.unit == "%":
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}"))
    axes.grid(axis="y", color=LIGHT["rule"], linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(LIGHT["muted"])
    axes.tick_params(colors=LIGHT["muted"], labelcolor=LIGHT["muted"])


def _height(axes: Axes, value: float) -> float:
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


def _draw_marks(axes: Axes, marks: Sequence[Verdict], last_step: int) -> None:
    """A vertical line where a rule spoke; its number is written where there is room for it."""
    free = float("-inf")
    for index, verdict in enumerate(marks, start=1):
        colour = LIGHT[MARK_COLOURS.get(verdict.level, "amber")]
        solid = verdict.level in ("stop", "rollback")
        axes.axvline(verdict.step, color=colour, linewidth=1.2 if solid else 0.8, linestyle="-" if solid else ":")
        if verdict.step >= free:
            axes.text(verdict.step, 1.04, str(index), color=colour, transform=axes.get_xaxis_transform(), ha="center")
            free = verdict.step + 0.04 * last_step


def _say(panel: Panel, value: float) -> str:
    """A value with the precision that its panel needs."""
    return percent(value) if panel.unit == "%" else number(value)
