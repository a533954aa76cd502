"""The curves of all runs, a plot a signal, over steps and over completions sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from components.compare.entry import Entry
from components.report.drawing import inline
from components.report.overlay import Overlay
from components.report.panels import PANELS, Panel, Series
from components.report.plots import Curves, describe, draw, points_of

SIGNALS = {
    "accuracy": ("accuracy", "Training accuracy"),
    "dev_pass_at_1": ("accuracy", "Dev accuracy, pass@1"),
    "reward": ("reward", "Reward"),
    "length_mean": ("length", "Completion length, mean"),
    "kl_ref": ("kl", "KL to the SFT checkpoint"),
    "entropy": ("entropy", "Entropy"),
}
"""Signal -> the report's panel that has it, and the title of the plot."""
READINGS = {
    "accuracy": "Raw verdicts of the prompts that the schedule chose: comparable only where the schedules are alike.",
    "dev_pass_at_1": "On fixed prompts: comparable where the dev split is the same.",
    "reward": "Accuracy plus shaping: comparable where the reward has the same parts.",
    "length_mean": "Growth without accuracy is padding.",
    "kl_ref": "How far the policy has moved from its SFT checkpoint (k3 estimate), where a run measures it.",
    "entropy": "Falls as the policy grows sure.",
}


@dataclass(frozen=True)
class Compared:
    """One signal of all runs that recorded it. ``by_completions`` is None where no run says how many there were."""

    signal: str
    title: str
    unit: str
    reading: str
    by_steps: Markup
    by_completions: Markup | None
    without: list[str]
    """Letters of the runs that did not record it."""


def draw_all(entries: Sequence[Entry]) -> list[Compared]:
    """A plot of every signal that some run recorded."""
    counts = {entry.letter: entry.completions for entry in entries}
    drawn = []
    for signal, (name, title) in SIGNALS.items():
        style = next(one.style for one in PANELS[name].series if one.signal == signal)
        items = {entry.letter: Series(signal, entry.letter, entry.colour, style) for entry in entries}
        panel = replace(
            PANELS[name], title=title, series=tuple(items.values()), reading=READINGS[signal], reference=None, total=""
        )
        curves: Curves = {items[one.letter]: points_of(one.run.records or (), signal) for one in entries}
        recorded = {item: curve for item, curve in curves.items() if curve[0]}
        if recorded:
            counted = {
                item: ([counts[item.label][step] for step in steps], values)
                for item, (steps, values) in recorded.items()
                if counts[item.label]
            }
            lacking = [item.label for item in curves if item not in recorded]
            over_steps = _inline(panel, recorded, entries, "step", _last_step(entries))
            most = max((max(by_step.values()) for by_step in counts.values() if by_step), default=0)
            over = _inline(panel, counted, entries, "completions", most) if counted else None
            drawn.append(Compared(signal, title, panel.unit, panel.reading, over_steps, over, lacking))
    return drawn


def _last_step(entries: Sequence[Entry]) -> int:
    """Where the axis of steps ends; the logs of other trainers may have every tenth step only."""
    return max(2, *(one.run.records[-1].step for one in entries if one.run.records))


def _inline(panel: Panel, curves: Curves, entries: Sequence[Entry], axis: str, last: int) -> Markup:
    figure = draw(panel, curves, Overlay(), entries[0].run.settings, last, "step" if axis == "step" else "")
    signal = next(iter(curves)).signal
    words = describe(panel, curves, Overlay(), "steps" if axis == "step" else axis)
    return inline(figure, f"{signal}-{axis}", words)
