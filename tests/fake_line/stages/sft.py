from __future__ import annotations

from components.stages.work import checkpoint, work

from components.config import Settings
from components.directories import write_directory
from components.files import write_json
from components.layout import Layout


def run(settings: Settings, layout: Layout) -> None:
    work("sft", layout, 2)
    write_directory(layout.sft, lambda folder: checkpoint(folder / "checkpoint", settings.sft.lr))
    write_json(layout.sft_metrics, {"steps": settings.sft.steps})
