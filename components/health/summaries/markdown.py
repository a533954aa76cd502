"""The run's verdict and its ledger as Markdown. What came from data or settings is shown, never interpreted."""

from __future__ import annotations

import re

from components.health.summaries.phrases import HEADS, Row, cells
from components.health.summaries.verdict import RunVerdict
from components.pages import visible
from components.words import NBSP

MARKUP = re.compile(r"([\\`*<>\[\]|~])|(?<![A-Za-z0-9])(_)|(_)(?![A-Za-z0-9])")


def to_markdown(run: str, verdict: RunVerdict, rows: list[Row]) -> str:
    """The page as text; ``run`` is its name. Equal runs give equal bytes."""
    lines = [f"# Health of run {plain(run)}", "", f"**{plain(verdict.headline)}**"]
    for part in verdict.parts:
        lines += ["", f"## {part.title}", "", *(f"- {plain(sentence)}" for sentence in part.sentences)]
    if rows:
        lines += ["", "## Ledger", "", _row(HEADS), _row(["---"] * len(HEADS)), *(_row(cells(row)) for row in rows)]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Text in which no character means anything to Markdown, and none hides."""
    return MARKUP.sub(lambda found: "\\" + found[0], visible(text).replace("\n", " ").replace(NBSP, " "))


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cell if set(cell) == {'-'} else plain(cell) for cell in cells)} |"
