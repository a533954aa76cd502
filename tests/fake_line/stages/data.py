from __future__ import annotations

from pathlib import Path
from typing import Any

from components.stages.work import work

from components.config import Settings
from components.config.pins import check_digest
from components.config.sources import FileSource
from components.directories import write_directory
from components.files import read_jsonl, write_json, write_jsonl, write_text
from components.layout import Layout


def read(settings: Settings) -> list[dict[str, Any]]:
    """A row a split; of a file every row, which goes to the split that its question begins with."""
    source = settings.data.source
    if not isinstance(source, FileSource):
        return [{"id": split, "seed": settings.seed} for split in ("sft", "train", "dev", "test")]
    check_digest(source.path, source.sha256)
    return [{"id": row["question"], "source": source.name or source.path.stem} for row in read_jsonl(source.path)]


def run(settings: Settings, layout: Layout) -> None:
    def fill(folder: Path) -> None:
        rows = read(settings)
        for split in ("sft", "train", "dev", "test"):
            write_jsonl(folder / f"{split}.jsonl", [row for row in rows if row["id"].startswith(split)])
        write_text(folder / "validation.html", "")
        write_json(folder / layout.consistency.name, None)

    work("data", layout, 2)
    write_directory(layout.data, fill)
    write_json(layout.validation, {"rows": 4, "quarantined": 0, "success": True})
