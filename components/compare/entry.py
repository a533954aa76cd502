"""One of the runs that are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from components.errors import InputError
from components.report.run import Missing, Run
from components.report.verdict import Headline, headline

COLOURS = ("blue", "orange", "green", "purple", "red", "amber", "ink", "muted")
"""Of the runs in their order; a letter is always next to a colour."""


@dataclass(frozen=True)
class StageTime:
    """How a stage ended and what that took; ``seconds`` is None where it has not ended."""

    state: str
    seconds: float | None


@dataclass(frozen=True)
class Entry:
    """``state`` is how far the run is, in a word, and ``commit`` that of its code. ``kept`` are the folders in which
    answers to test prompts may be kept (`components.evaluation.cache`)."""

    name: str
    state: str
    run: Run
    commit: str = ""
    processor: str = ""
    stages: Mapping[str, StageTime] = field(default_factory=dict)
    hours: float | None = None
    """Of work, all attempts together; None where nothing is on record."""
    gpu_hours: float = 0.0
    kept: Sequence[Path] = ()
    letter: str = "A"
    colour: str = COLOURS[0]

    @property
    def title(self) -> str:
        return f"{self.letter} · {self.name}"

    @cached_property
    def headline(self) -> Headline:
        """What its own report says at the top."""
        return headline(self.run)

    @property
    def missing(self) -> list[Missing]:
        """Outputs that are not there; steps of a training under way are."""
        return [one for one in self.run.missing if getattr(self.run, one.part) is None]

    @property
    def steps(self) -> int:
        """Steps on record."""
        return len(self.run.records or ())


def lettered(entries: Sequence[Entry]) -> list[Entry]:
    """The same with a letter and a colour each.

    Raises:
        InputError: there are fewer than two, or more than there are colours.
    """
    if not 2 <= len(entries) <= len(COLOURS):
        how = f"name two to {len(COLOURS)} runs; `evenkeel status` lists them"
        raise InputError(f"{len(entries)} runs cannot be put side by side", where="compare", how=how)
    marks = zip(entries, "ABCDEFGH", COLOURS, strict=False)
    return [replace(entry, letter=letter, colour=colour) for entry, letter, colour in marks]
