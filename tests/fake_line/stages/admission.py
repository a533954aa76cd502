from __future__ import annotations

from components.config import Settings
from components.files import write_json, write_jsonl
from components.layout import Layout


def run(settings: Settings, layout: Layout) -> None:
    write_jsonl(layout.admission_flags, [])
    write_jsonl(layout.base_answers, [])
    write_json(layout.admission, {"verdict": "clear", "withheld": [], "flagged": []})
