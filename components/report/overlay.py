"""What the monitor draws over a plot: limits of rules, where they fired, what was done, and what was thrown away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from matplotlib.axes import Axes

from components.config import Settings
from components.health.limits import Limit, limits
from components.health.monitor import LEVELS
from components.health.records import Discarded, Ledger, discarded
from components.report.drawing import LIGHT, Label, height
from components.report.panels import Panel, say
from components.types import Level, Response, StepRecord, Verdict

COLOURS: dict[Level, str] = {"warn": "amber", "intervene": "purple", "rollback": "red", "stop": "red"}
SHAPES: dict[Level, str] = {"warn": "o", "intervene": "D", "rollback": "<", "stop": "s"}
"""Matplotlib markers; `training.jinja` draws the same shapes in the legend."""
REACH = 1.6
"""A limit further than this times the largest value would flatten the curve: only its label is shown."""


Event = TypeVar("Event", Verdict, Response)
MANY, COLUMNS = 200, 250
"""Events beyond ``MANY`` are drawn at most once for each of so many columns: the others would lie on top of them."""


@dataclass(frozen=True)
class Overlay:
    """All of it, for every panel. ``verdicts`` are numbered from 1 in the order given."""

    verdicts: Sequence[Verdict] = ()
    responses: Sequence[Response] = ()
    stretches: Sequence[Discarded] = ()
    limits: Sequence[Limit] = field(default=())


@dataclass(frozen=True)
class Line:
    """Limits of one signal at one value: ``alone`` are the rules for which that decides, ``joint`` the others."""

    signal: str
    value: float
    above: bool
    alone: tuple[Limit, ...]
    joint: tuple[Limit, ...]

    @property
    def level(self) -> Level:
        """The gravest that crossing the line alone can lead to, or where it cannot, together with something else."""
        return max((limit.level for limit in self.alone or self.joint), key=LEVELS.index)

    @property
    def side(self) -> str:
        return ">" if self.above else "<"


def overlay_of(
    records: Sequence[StepRecord], verdicts: Sequence[Verdict], ledger: Ledger, settings: Settings
) -> Overlay:
    """The overlay of a run."""
    return Overlay(
        verdicts=verdicts,
        responses=ledger.responses,
        stretches=discarded([record.step for record in records], ledger.responses),
        limits=limits(settings.health.rules) if settings.health.enabled else (),
    )


def lines(found: Sequence[Limit], panel: Panel) -> list[Line]:
    """The limits that belong into a panel, equal ones together."""
    shown = {item.signal for item in panel.series} | {panel.total}
    grouped: dict[tuple[str, float, bool], list[Limit]] = {}
    for limit in found:
        if limit.signal in shown:
            grouped.setdefault((limit.signal, limit.value, limit.above), []).append(limit)
    return [
        Line(*key, alone=tuple(one for one in group if one.alone), joint=tuple(one for one in group if not one.alone))
        for key, group in sorted(grouped.items(), key=lambda item: item[0][1])
    ]


def near(line: Line, largest: float) -> bool:
    """Whether the line can be drawn without flattening the curves."""
    return line.value <= REACH * largest


def draw_lines(axes: Axes, panel: Panel, drawn: Sequence[Line]) -> list[Label]:
    """Draw the limits that lie within the axes; returns a label for each."""
    low, high = axes.get_ylim()
    labels = []
    for line in drawn:
        colour = COLOURS[line.level]
        text = f"{line.level}{'' if line.alone else '*'} {line.side} {say(panel, line.value)}"
        if not low <= line.value <= high:
            labels.append(Label(float(line.value > high), f"{text} {'↑' if line.value > high else '↓'}", colour))
            continue
        dashes = "-" if line.alone else (0, (1, 2))
        axes.axhline(line.value, color=LIGHT[colour], linewidth=0.8, linestyle=dashes, zorder=1)
        if line.alone:
            edges = (line.value, high) if line.above else (low, line.value)
            axes.axhspan(*edges, color=LIGHT[colour], alpha=0.07, linewidth=0, zorder=0)
        labels.append(Label(height(axes, line.value), text, colour))
    return labels


def draw_events(axes: Axes, overlay: Overlay, last_step: int) -> None:
    """Discarded steps in grey; a number where a rule fired, a shape where something was done."""
    for part in overlay.stretches:
        axes.axvspan(part.first - 0.5, part.last + 0.5, color=LIGHT["muted"], alpha=0.18, linewidth=0, zorder=0)
    free = float("-inf")
    for index, verdict in apart(overlay.verdicts, last_step):
        colour = LIGHT[COLOURS.get(verdict.level, "amber")]
        grave = verdict.level in ("rollback", "stop")
        axes.axvline(verdict.step, color=colour, linewidth=1.2 if grave else 0.8, linestyle="-" if grave else ":")
        if verdict.step >= free:
            axes.text(verdict.step, 1.04, str(index), color=colour, transform=axes.get_xaxis_transform(), ha="center")
            free = verdict.step + 0.04 * last_step
    for _, response in apart(overlay.responses, last_step):
        colour = LIGHT[COLOURS.get(response.level, "amber")]
        if response.level != "warn":  # a warning has its verdict's line already
            axes.axvline(response.step, color=colour, linewidth=1.1)
        axes.plot(
            [response.step], [1.0], marker=SHAPES.get(response.level, "o"), color=colour, markersize=4.5,
            transform=axes.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip


def apart(events: Sequence[Event], last_step: int) -> Iterator[tuple[int, Event]]:
    """Events with their numbers from 1, without those that look the same as an earlier one of their level."""
    latest: dict[str, int] = {}
    for number, event in enumerate(events, start=1):
        close = event.step - latest.get(event.level, -last_step) < last_step / COLUMNS
        if close and len(events) > MANY:
            continue
        latest[event.level] = event.step
        yield number, event


def describe_lines(panel: Panel, drawn: Sequence[Line]) -> list[str]:
    """What each line of a panel means: the rules, and which of them need something else too."""
    out = []
    for line in drawn:
        alone = ", ".join(f"{limit.rule} ({limit.level})" for limit in line.alone)
        joint = ", ".join(f"{limit.rule} ({limit.level})" for limit in line.joint)
        rules = "; ".join(part for part in (alone, f"together with more: {joint}" if joint else "") if part)
        out.append(f"{line.signal} {line.side} {say(panel, line.value)}: {rules}")
    return out
