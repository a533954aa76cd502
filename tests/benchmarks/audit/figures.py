"""The table of planted holes, from the rows of the result file. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tests.benchmarks.lines import source
from tests.benchmarks.section import Row
from tests.benchmarks.spread import table

FIGURES = ("holes", "found", "missed", "source")
HALVES = ("design", "held_out", "other_author")


def figures(rows: Sequence[Row]) -> dict[str, str]:
    """`FIGURES`; "not measured" where there is no row."""
    if not rows:
        return dict.fromkeys(FIGURES, "not measured")
    kinds = dict.fromkeys(row["answers"] for row in rows)
    lines = [[f"`{kind}`", *(_share(rows, half, kind) for half in HALVES)] for kind in kinds]
    missed = [f"{row['hole']} (`{row['answers']}`)" for row in rows if row["found_by"] is None]
    return {
        "holes": table(
            [
                "answers",
                "found, of those that the probes were designed with",
                "of those held out",
                "of another author's",
            ],
            lines,
        ),
        "found": " and ".join(f"{_share(rows, half)} ({half.replace('_', ' ')})" for half in HALVES),
        "missed": "; ".join(missed) or "none",
        "source": source("make holes", rows),
    }


def _share(rows: Sequence[Row], half: str, kind: str | None = None) -> str:
    found = [row["found_by"] is not None for row in rows if row["half"] == half and kind in (None, row["answers"])]
    return f"{sum(found)} of {len(found)}" if found else "-"
