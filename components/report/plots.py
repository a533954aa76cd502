"""Draw panels: lines labelled at their ends, the y axis from 0, and over them what the monitor did; for the page, and
as PNG for places that show pictures but no page."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from components.config import Settings
from components.health.responses import Ledger
from components.report.drawing import LIGHT, STYLE, Label, height, inline, write
from components.report.overlay import Line, Overlay, describe_lines, draw_events, draw_lines, lines, near, overlay_of
from components.report.panels import PANELS, Panel, Series, expand, say
from components.report.run import Run
from components.types import StepRecord
from components.words import plural

SIZE = (5.2, 2.05)
"""Inches. The page scales plots to its column; text in them is 8.5 points at this size."""
BOX = (0.085, 0.13, 0.65, 0.75)
"""Axes within the figure: fixed, so that panels line up and nothing depends on measured text."""
LOG_FLOOR = 1e-7
"""Below it a logarithmic panel is linear down to 0, so that an exact 0 can be drawn."""
MOST_POINTS, PARTS = 4000, 1000
"""Points from which on a curve is thinned, and to how many parts of the axis: several for each point of the paper."""
Curves = Mapping[Series, tuple[list[int], list[float]]]
"""Steps and values of every series that was recorded."""
DPI = 110
"""A picture is then 570 by 225 pixels, and about 15 kB."""


@dataclass(frozen=True)
class Plot:
    """One drawn panel. ``limits`` states which rules the lines belong to."""

    name: str
    panel: Panel
    svg: Markup
    limits: list[str]


@dataclass(frozen=True)
class Picture:
    """One plot; ``description`` is for readers who do not see it."""

    title: str
    description: str
    png: bytes


def draw_all(records: Sequence[StepRecord], overlay: Overlay, settings: Settings) -> list[Plot]:
    """Every panel of which at least one signal was recorded."""
    return [
        Plot(
            name,
            panel,
            inline(figure, name, describe(panel, curves, overlay)),
            describe_lines(panel, _lines(overlay, panel, curves)),
        )
        for name, panel, curves, figure in _drawn(PANELS, records, overlay, settings)
    ]


def pictures(run: Run, names: Sequence[str]) -> list[Picture]:
    """The panels of these names in `PANELS` as PNG, without those of which the run recorded nothing."""
    records = run.records or []
    overlay = overlay_of(records, run.verdicts or [], run.ledger or Ledger(), run.settings)
    made = []
    for _, panel, curves, figure in _drawn(names, records, overlay, run.settings):
        file = io.BytesIO()
        with matplotlib.rc_context(STYLE):
            figure.savefig(file, format="png", dpi=DPI, facecolor=LIGHT["page"], metadata={"Software": None})
        made.append(Picture(panel.title, describe(panel, curves, overlay), file.getvalue()))
    return made


def _drawn(
    names: Iterable[str], records: Sequence[StepRecord], overlay: Overlay, settings: Settings
) -> Iterator[tuple[str, Panel, Curves, Figure]]:
    """The panels of which at least one signal was recorded, with the signals of their prefix, and their figures."""
    signals = sorted({signal for record in records for signal in record.signals})
    for name in names:
        panel = expand(PANELS[name], signals)
        if curves := {item: curve for item in panel.series if (curve := points_of(records, item.signal))[0]}:
            yield name, panel, curves, draw(panel, curves, overlay, settings, last_step=max(2, records[-1].step))


def points_of(records: Sequence[StepRecord], signal: str) -> tuple[list[int], list[float]]:
    """Steps on which ``signal`` was recorded, and its values there."""
    found = [(record.step, record.signals[signal]) for record in records if signal in record.signals]
    return [step for step, _ in found], [value for _, value in found]


def describe(panel: Panel, curves: Curves, overlay: Overlay, over: str = "steps") -> str:
    """A text alternative of the plot; ``over`` is what the x axis counts."""
    ends = [f"{item.label} {say(panel, y[0])} to {say(panel, y[-1])}" for item, (_, y) in curves.items()]
    marks = [(len(overlay.verdicts), "verdict"), (len(overlay.responses), "response")]
    sentences = [f"{plural(amount, noun)} marked" for amount, noun in marks if amount]
    return "; ".join([f"{panel.title} over {over}: {'; '.join(ends)}", *sentences])


def _lines(overlay: Overlay, panel: Panel, curves: Curves) -> list[Line]:
    """The limits of signals that were recorded."""
    drawn = {item.signal for item in curves} | {panel.total}
    return [line for line in lines(overlay.limits, panel) if line.signal in drawn]


def draw(
    panel: Panel, curves: Curves, overlay: Overlay, settings: Settings, last_step: int, axis: str = "step"
) -> Figure:
    """The figure of one panel; ``axis`` is the name of the x axis, which ends at ``last_step``."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE)
        axes = figure.add_axes(BOX)
        tops = _draw_curves(axes, panel, curves)
        setting = panel.reference.value(settings) if panel.reference else None
        rules = _lines(overlay, panel, curves)
        _scale(axes, panel, curves, setting, rules, last_step)
        style_axes(axes, axis)
        labels = [
            Label(height(axes, tops[item]), f"{item.label} {say(panel, curves[item][1][-1])}", item.colour)
            for item in curves
        ]
        if panel.reference and setting is not None:
            axes.axhline(setting, color=LIGHT["muted"], linewidth=0.8, linestyle=(0, (4, 3)))
            labels.append(Label(height(axes, setting), f"{panel.reference.label} {say(panel, setting)}", "muted"))
        write(axes, labels + draw_lines(axes, panel, rules))
        draw_events(axes, overlay, last_step)
    return figure


def _draw_curves(axes: Axes, panel: Panel, curves: Curves) -> dict[Series, float]:
    """Draw every curve; returns the height, in data units, at which its label belongs."""
    ends = {}
    floor: dict[int, float] = {}
    for item, curve in curves.items():
        colour = LIGHT[item.colour]
        x, y = thinned(*curve, extremes=item.style != "area")
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


def thinned(x: list[int], y: list[float], *, extremes: bool) -> tuple[list[int], list[float]]:
    """A long curve with no more points than can be seen, its last one among them: of every few steps the least and the
    largest value, or where areas are stacked, which need the same steps, the first.
    """
    every = -(-len(x) // PARTS)
    if len(x) <= MOST_POINTS:
        return x, y
    places = {len(x) - 1}
    for start in range(0, len(x), every):
        few = range(start, min(start + every, len(x)))
        places |= {min(few, key=y.__getitem__), max(few, key=y.__getitem__)} if extremes else {start}
    kept = sorted(places)
    return [x[place] for place in kept], [y[place] for place in kept]


def _scale(
    axes: Axes, panel: Panel, curves: Curves, setting: float | None, rules: Sequence[Line], last_step: int
) -> None:
    """Axes limits and ticks: x is the same in every panel; y starts at 0, or below it for a signed signal."""
    values = [value for _, y in curves.values() for value in y] + ([] if setting is None else [setting])
    largest = max(values)
    values += [line.value for line in rules if near(line, largest)]
    axes.set_xlim(0, last_step)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
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


def style_axes(axes: Axes, name: str) -> None:
    """What all plots have in common: a pale grid, no box, and the name of the x axis at its end."""
    axes.text(1.035, -0.095, name, color=LIGHT["muted"], transform=axes.transAxes, va="center")
    axes.grid(axis="y", color=LIGHT["rule"], linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(LIGHT["muted"])
    axes.tick_params(colors=LIGHT["muted"], labelcolor=LIGHT["muted"])
