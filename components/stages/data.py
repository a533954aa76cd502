"""Stage `data`: read or generate rows, validate them, split them."""

from __future__ import annotations

from pathlib import Path

from components.config import Settings
from components.data import SOURCES
from components.data.admission import admit, check_admitted, check_limits, judge_solutions
from components.data.page import render
from components.data.validation import validate
from components.errors import InputError
from components.files import write_directory, write_json, write_jsonl, write_text
from components.layout import Layout
from components.progress import progress
from components.rewards.sandbox import Sandbox


def run(settings: Settings, layout: Layout) -> None:
    """Write `out/data` and `out/validation.json`, or nothing but the quarantine of data that is refused.

    Raises:
        InputError: unreadable source, too many bad rows, or an empty split.
    """
    data = settings.data
    with progress("data", 4) as bar:
        candidates = list(SOURCES[data.source.kind](data.source, settings.seed))
        if not candidates:
            raise InputError("the source has no rows", where=getattr(data.source, "path", "data.source"))
        bar.advance(1, f"{len(candidates)} rows read")
        with Sandbox(settings.reward.verifier, settings.reward.sandbox) as sandbox:
            rows = judge_solutions(candidates, sandbox, data.splits)
        bar.advance(2, "reference solutions judged")
        admission = admit(candidates, rows, validate(rows, data.validation))
        refused = layout.state / "quarantine.jsonl"
        check_limits(admission, data, refused)
        check_admitted(admission, data)
        bar.advance(3, f"{len(admission.prompts)} rows admitted")

        def fill(folder: Path) -> None:
            for name, prompts in admission.splits.items():
                write_jsonl(folder / f"{name}.jsonl", (prompt.to_dict() for prompt in prompts))
            write_jsonl(folder / "quarantine.jsonl", (row.to_dict() for row in admission.quarantine))
            write_text(folder / "validation.html", render(admission, data.source))

        write_directory(layout.data, fill)
        write_json(layout.validation, admission.summary())
        refused.unlink(missing_ok=True)
        bar.advance(4, f"{len(admission.quarantine)} in quarantine")
