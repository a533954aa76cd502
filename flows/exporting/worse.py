"""What got worse, as a model card has it: one sentence each, none where nothing that was measured fell."""

from __future__ import annotations

from collections.abc import Iterator

from components.report.attention import worse as fell
from components.report.canaries import canary_rows
from components.report.gains import Gain, forests
from components.report.run import Run
from components.words import percent, points


def worse(run: Run) -> list[str]:
    """Gains below 0, probe sets that were lost, then what the report points out."""
    return [*_gains(run), *_lost(run), *fell(run)]


def gains(run: Run) -> list[tuple[str, str, Gain]]:
    """Whom it is compared with, of which prompts, and the gain; without slices."""
    return [
        (forest.before, title, row)
        for forest in forests(run.measured, run.settings.evaluation.small)
        for title, rows in forest.groups.items()
        if not title.startswith("pass@1 by ")
        for row in rows
    ]


def _gains(run: Run) -> Iterator[str]:
    for before, title, row in gains(run):
        if row.mean is not None and row.mean < 0:
            change = f"{percent(row.before)} to {percent(row.after)} ({points(row.mean)} points, {row.interval})"
            yield f"{title}, {row.name}, against {before}: {change}."


def _lost(run: Run) -> Iterator[str]:
    for row in canary_rows(run):
        if row.result == "lost":
            interval = "" if row.low is None else f", 95 % interval {points(row.low)} to {points(row.high)}"
            yield f"Probe set {row.name} ({row.way}): {points(row.change)} points{interval}, more than it may fall."
