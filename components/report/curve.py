"""The pass@k curve: how many answers one has to sample until one is right, under each policy."""

from __future__ import annotations

from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.figure import Figure

from components.report.drawing import LIGHT, STYLE, Label, inline, write
from components.report.plots import BOX, SIZE, style_axes
from components.report.run import Part, dig
from components.words import percent

POLICIES = {"sft": ("SFT", "muted"), "champion": ("champion", "orange"), "trained": ("trained", "blue")}
"""Side in `out/evaluation.json` -> label and colour."""
Curves = dict[str, dict[int, float]]
"""Side -> k -> share."""


def curves(evaluation: Part | None) -> Curves:
    """Those of the sides with at least two k."""
    found = {side: _curve(evaluation, side) for side in POLICIES}
    return {side: curve for side, curve in found.items() if len(curve) > 1}


def _curve(evaluation: Part | None, side: str) -> dict[int, float]:
    measured: dict[Any, Any] = dig(evaluation, side, "pass_at") or {}
    measured = measured or {
        1: dig(evaluation, side, "pass_at_1"),
        dig(evaluation, "k"): dig(evaluation, side, "pass_at_k"),
    }
    known = {int(k): float(value) for k, value in measured.items() if k is not None and value is not None}
    return dict(sorted(known.items()))


def pass_curve(evaluation: Part | None) -> Markup | None:
    """The plot, or None where there are no two points of any policy."""
    found = curves(evaluation)
    return inline(_draw(found), "pass-at-k", _describe(found)) if found else None


def _describe(found: Curves) -> str:
    sentences = []
    for side, curve in found.items():
        ends = (min(curve), max(curve))
        sentences.append(f"{POLICIES[side][0]} {' to '.join(f'{percent(curve[k])} at k {k}' for k in ends)}")
    return f"pass@k: {'; '.join(sentences)}"


def _draw(found: Curves) -> Figure:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE)
        axes = figure.add_axes(BOX)
        labels = []
        for side, curve in found.items():
            name, colour = POLICIES[side]
            shares = list(curve.values())
            axes.plot(list(curve), shares, color=LIGHT[colour], linewidth=1.2, marker="o", markersize=3.2)
            labels.append(Label(shares[-1], f"{name} {percent(shares[-1])}", colour))
        ticks = sorted({k for curve in found.values() for k in curve})
        axes.set_xscale("log", base=2)
        axes.set_xlim(ticks[0], ticks[-1])
        axes.set_xticks(ticks, [str(k) for k in ticks])
        axes.minorticks_off()
        axes.set_ylim(0, 1)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
        style_axes(axes, "k")
        write(axes, labels)
    return figure
