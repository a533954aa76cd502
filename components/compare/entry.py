"""One of the runs that are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import mul
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
class Sampled:
    """Of the training alone; None where its steps do not say. Prompts are not among the tokens."""

    completions: int | None
    tokens: int | None


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

    @cached_property
    def completions(self) -> dict[int, int]:
        """Step -> completions sampled for training until its end, what was thrown away included; empty where the steps
        do not say."""
        total, found = 0, {}
        for record in self.run.records or ():
            if "groups_sampled" not in record.signals:
                return {}
            whole = record.signals["groups_sampled"] * self.run.settings.rollout.group_size
            total += round(record.signals.get("completions_sampled", whole))  # fewer where groups were not completed
            found[record.step] = total
        return found

    @property
    def sampled(self) -> Sampled:
        """Completions, and tokens in them, of all steps, what was thrown away included."""
        records, totals = self.run.records or (), list(self.completions.values())
        if not totals:
            return Sampled(None, None)
        each = [total - before for before, total in pairwise([0, *totals])]
        lengths = [record.signals["length_mean"] for record in records if "length_mean" in record.signals]
        tokens = sum(map(mul, each, lengths)) if len(lengths) == len(each) else None
        return Sampled(totals[-1], None if tokens is None else round(tokens))

    @property
    def seconds(self) -> float | None:
        """Of all stages that were executed."""
        known = [one.seconds for one in self.stages.values() if one.seconds is not None and one.state != "cached"]
        return sum(known) if known else None


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
