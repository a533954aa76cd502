from __future__ import annotations

from components.config import Settings
from components.files import write_json
from components.layout import Layout


def run(settings: Settings, layout: Layout) -> None:
    verdict = "refuse" if settings.triage.min_headroom == 1 else "accept"
    write_json(layout.triage, {"verdict": verdict, "reasons": ["nothing left to gain"]})
