"""Some of the page's plots as PNG images, for places that show pictures but no page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib

from components.health.responses import Ledger
from components.report.overlay import overlay_of
from components.report.palette import LIGHT
from components.report.panels import PANELS
from components.report.plots import describe, draw, recorded, signals_of
from components.report.run import Run
from components.report.svg import STYLE

DPI = 110
"""A picture is then 570 by 225 pixels, and about 15 kB."""


@dataclass(frozen=True)
class Picture:
    """One plot; ``description`` is for readers who do not see it."""

    title: str
    description: str
    png: bytes


def pictures(run: Run, names: Sequence[str]) -> list[Picture]:
    """The panels of these names in `panels.PANELS`, without those of which the run recorded nothing."""
    records = run.records or []
    if not records:
        return []
    overlay = overlay_of(records, run.verdicts or [], run.ledger or Ledger(), run.settings)
    made = []
    for name in names:
        panel, curves = recorded(PANELS[name], records, signals_of(records))
        if curves:
            figure = draw(panel, curves, overlay, run.settings, last_step=max(2, records[-1].step))
            file = io.BytesIO()
            with matplotlib.rc_context(STYLE):
                figure.savefig(file, format="png", dpi=DPI, facecolor=LIGHT["page"], metadata={"Software": None})
            made.append(Picture(panel.title, describe(panel, curves, overlay), file.getvalue()))
    return made
