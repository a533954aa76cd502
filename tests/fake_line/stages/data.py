from __future__ import annotations

from pathlib import Path

from components.stages.work import work

from components.config import Settings
from components.files import write_directory, write_json, write_jsonl, write_text
from components.layout import Layout


def run(settings: Settings, layout: Layout) -> None:
    def fill(folder: Path) -> None:
        for split in ("sft", "train", "dev", "test"):
            write_jsonl(folder / f"{split}.jsonl", [{"id": split, "seed": settings.seed}])
        write_text(folder / "validation.html", "")
        write_json(folder / layout.consistency.name, None)

    work("data", layout, 2)
    write_directory(layout.data, fill)
    write_json(layout.validation, {"rows": 4, "quarantined": 0, "success": True})
