"""What the page and its plots have in common: colours, labels, SVG, and the axis of a forest plot.

One list of colours has light and dark values of every role, safe for colour-blind readers. The hues follow Okabe and
Ito, darkened or lightened until text in them is readable. Plots are drawn with the light values; `inline` then replaces
each by the role's CSS variable, so that the reader's theme colours text and plots alike. Labels stand at the right edge
of a plot, in data order and never on top of each other.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "evenkeel",  # ids are otherwise drawn at random
    "svg.fonttype": "none",  # text stays text: searchable, and set in the page's font
    "text.parse_math": False,  # a dollar sign is a dollar sign
    "font.size": 8.5,
    "axes.linewidth": 0.7,
    "xtick.major.size": 2.5,
    "ytick.major.size": 0,
}

CLEANING = (
    (r"<metadata>.*?</metadata>|<style.*?</style>", ""),  # a style element here would reach the whole page
    (r' id="(?![mp][0-9a-f]{10}")[^"]*"', ""),  # ids that nothing refers to
    (r"font-family: [^;\"]*;? ?", ""),
    (r' transform="rotate\(-0[^"]*"', ""),
    (r"xlink:href", "href"),
    (r"\s*\n\s*", "\n"),
)
ROLES: dict[str, tuple[str, str]] = {
    "page": ("#fdfdfc", "#14171a"),
    "card": ("#f4f5f3", "#1d2125"),
    "ink": ("#1c2126", "#e7eaec"),
    "muted": ("#5d666f", "#9ba5ae"),
    "rule": ("#d6dad9", "#353c43"),
    "blue": ("#0b64a0", "#63b3ed"),
    "orange": ("#b35300", "#f0954a"),
    "green": ("#0a7354", "#4cc79e"),
    "purple": ("#8f4178", "#d893c2"),
    "red": ("#b3261e", "#ff8a80"),
    "amber": ("#8a6100", "#e5b84b"),
}
"""Role -> (light, dark). Values are distinct within a theme: they are how a plot's colours are found again."""

LIGHT = {role: light for role, (light, _) in ROLES.items()}
LABEL_GAP = 0.125
"""Least distance of two labels, in heights of the axes."""
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
MOST_TICKS = 7


def inline(figure: Figure, name: str, description: str) -> Markup:
    """SVG text of ``figure`` for use inside HTML.

    Args:
        figure: drawn with colours of `LIGHT` only.
        name: unique on the page; ids are prefixed with it.
        description: what the plot shows, read out instead of it.
    """
    buffer = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    for pattern, replacement in CLEANING:
        text = re.sub(pattern, replacement, text, flags=re.DOTALL)
    text = re.sub(r'id="|url\(#|href="#', lambda found: f"{found[0]}{name}-", text)
    for role, colour in LIGHT.items():
        text = text.replace(colour, f"var(--{role})")
    box = re.search(r'viewBox="[^"]*"', text)
    assert box, "matplotlib writes a viewBox"
    body = text[text.index(">", box.end()) + 1 :]
    return Markup(f'<svg {box[0]} role="img" aria-label="{escape(description)}">{body}')


def css(theme: int) -> str:
    """CSS declarations of every role; ``theme`` 0 is light, 1 is dark."""
    return " ".join(f"--{role}: {colours[theme]};" for role, colours in ROLES.items())


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


@dataclass(frozen=True)
class Axis:
    """``low`` and ``high`` are its ends and multiples of ``step``; 0 is always on it."""

    low: float
    high: float
    step: float

    def at(self, value: float) -> str:
        """The position of a value as per cent of the width; what is beyond an end is drawn at the end."""
        share = (value - self.low) / (self.high - self.low)
        return f"{100 * min(1.0, max(0.0, share)):.2f}%"

    def holds(self, value: float) -> bool:
        """Whether a value is not beyond an end."""
        return self.low - 1e-9 <= value <= self.high + 1e-9

    def between(self, low: float, high: float) -> str:
        """The width of a stretch as per cent."""
        ends = (min(self.high, max(self.low, value)) for value in (low, high))
        first, last = ends
        return f"{100 * max(0.0, last - first) / (self.high - self.low):.2f}%"

    def ticks(self) -> Iterator[float]:
        """The ticks, from low to high."""
        for index in range(round(self.low / self.step), round(self.high / self.step) + 1):
            yield index * self.step


def axis_over(values: Iterable[float | None]) -> Axis:
    """The shortest axis of round ends with all values and 0 on it."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min([0.0, *known]), max([0.0, *known])
    span = max(high - low, STEPS[0])
    step = next((step for step in STEPS if span / step <= MOST_TICKS - 1), STEPS[-1])
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Axis(first * step, max(last, first + 1) * step, step)
