"""Stage `data`: read or generate rows, validate them, split them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.config import Settings
from components.config.consistency import EmbeddedConsistency
from components.data import SOURCES
from components.data.admission import admit, check_admitted, check_limits, judge_solutions
from components.data.page import render
from components.data.validation import validate
from components.errors import InputError
from components.files import write_directory, write_json, write_jsonl, write_text
from components.layout import Layout
from components.progress import progress
from components.rewards.consistency.embedded import Weights, weights_file
from components.rewards.consistency.training import train
from components.rewards.sandbox import Sandbox
from components.seeds import derive
from components.types import Prompt


def run(settings: Settings, layout: Layout) -> None:
    """Write `out/data` and `out/validation.json`, or nothing but the quarantine of data that is refused.

    Raises:
        InputError: unreadable source, too many bad rows, an empty split, or solutions that the consistency classifier
            cannot learn from.
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
        weights, measured = consistency(admission.splits["sft"], settings)

        def fill(folder: Path) -> None:
            for name, prompts in admission.splits.items():
                write_jsonl(folder / f"{name}.jsonl", (prompt.to_dict() for prompt in prompts))
            write_jsonl(folder / "quarantine.jsonl", (row.to_dict() for row in admission.quarantine))
            write_text(folder / "validation.html", render(admission, data.source))
            write_json(folder / layout.consistency.name, weights_file(weights))

        write_directory(layout.data, fill)
        write_json(layout.validation, admission.summary() | measured)
        refused.unlink(missing_ok=True)
        bar.advance(4, f"{len(admission.quarantine)} in quarantine")


def consistency(prompts: Sequence[Prompt], settings: Settings) -> tuple[Weights | None, dict[str, Any]]:
    """The embedded classifier made from the SFT split, and its figures for the metrics; neither where nobody asks."""
    chosen = settings.reward.consistency
    if not isinstance(chosen, EmbeddedConsistency):
        return None, {}
    weights, figures = train(prompts, chosen, derive(settings.seed, "consistency"))
    return weights, {"consistency": figures}
