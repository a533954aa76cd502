"""What each run took: time, completions, tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import mul

from components.compare.curves import completions_of
from components.compare.entry import Entry


@dataclass(frozen=True)
class Sampled:
    """Of the training alone; None where its steps do not say. Prompts are not among the tokens."""

    completions: int | None
    tokens: int | None


def sampled(entry: Entry) -> Sampled:
    """Completions, and tokens in them, of all steps, what was thrown away included."""
    records, totals = entry.run.records or (), list(completions_of(entry).values())
    if not totals:
        return Sampled(None, None)
    each = [total - before for before, total in pairwise([0, *totals])]
    lengths = [record.signals["length_mean"] for record in records if "length_mean" in record.signals]
    tokens = sum(map(mul, each, lengths)) if len(lengths) == len(each) else None
    return Sampled(totals[-1], None if tokens is None else round(tokens))


def stages_of(entries: Sequence[Entry]) -> list[str]:
    """The stages that some run began."""
    return list(dict.fromkeys(name for entry in entries for name in entry.stages))


def seconds(entry: Entry) -> float | None:
    """Of all stages that were executed."""
    known = [one.seconds for one in entry.stages.values() if one.seconds is not None and one.state != "cached"]
    return sum(known) if known else None
