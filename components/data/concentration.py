"""How much of the data, and of the train split, is one thing. Repeats are counted before uniqueness sets them aside
without much ado.

What `likeness` evens out is seen through: case, spaces, punctuation, invisible characters, numbers, quoted texts, and
names inside sentences; MinHash sees through a few changed words. What is not seen: paraphrases, different sentences put
before or after a short item, letters that only look like others, and answers that say the same in other words. For
those there are the label audit and the sensitive words of the admission stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.config.data import ConcentrationSettings
from components.data.candidates import Candidate
from components.data.splits import SPLITS
from components.data.survey import Keys, Survey, mix, rows_with
from components.errors import InputError

SHOWN_CHARS = 200
WORDS: Mapping[str, tuple[str, str]] = {
    "item": ("are one question, equal or nearly so", "max_item"),
    "labelled template": (
        "are one template (numbers, quoted texts and names masked) with one and the same answer",
        "max_labelled_template",
    ),
    "template": ("are one template (numbers, quoted texts and names masked)", "max_template"),
    "source": ("come from one source", "max_source"),
}
"""Kind -> what its rows have in common, and the setting that limits it."""


ONE_ANSWER = 0.8
"""Share of a template's rows with one answer from which on its numbers are decoration: sums have many answers."""
TRAIN = "train"
"""The split whose rows get the gradient steps."""


@dataclass(frozen=True, slots=True)
class Heaviest:
    """The most frequent item, template or source: how many of so many rows it has, and the position of its first one.

    ``split`` names the split whose rows were counted; None for all rows read.
    """

    common: str
    split: str | None
    rows: int
    of: int
    limit: float
    first: int
    refused: bool

    @property
    def kind(self) -> str:
        return self.common if self.split is None else f"{self.common} of the {self.split} split"

    @property
    def share(self) -> float:
        return self.rows / self.of if self.of else 0.0

    def to_dict(self, named: Mapping[int, Candidate]) -> dict[str, Any]:
        """As `validation.json` has it, with the item by id, line and text."""
        candidate = named.get(self.first)
        return {
            "kind": self.kind,
            "rows": self.rows,
            "of": self.of,
            "share": self.share,
            "limit": self.limit,
            "success": not self.refused,
            "item": None if candidate is None else _named(candidate),
        }


def concentration(found: Survey, limits: ConcentrationSettings, computed: bool) -> list[Heaviest]:
    """The heaviest item, labelled template, template and source: of all rows read, then of those of the train split.

    A row's split is a public hash of its text, so that rows can be written for the train split, where they are a far
    larger share than in the whole. ``computed``: labels and wordings are a generator's, so that only repeats of items
    count.
    """
    kinds = list(_kinds(found, limits))[: 1 if computed else None]
    trained = found.splits == SPLITS.index(TRAIN)
    return [
        _heaviest(common, split, keys, rows, limit, limits.min_rows)
        for split, rows in ((None, np.ones_like(trained)), (TRAIN, trained))
        for common, keys, limit in kinds
    ]


def _kinds(found: Survey, limits: ConcentrationSettings) -> Iterator[tuple[str, Keys, float]]:
    yield "item", found.items, limits.max_item
    labelled = (found.words > 0) & (found.answers != 0)
    pairs = mix(found.groups, found.answers)
    one_answer = rows_with(pairs) >= ONE_ANSWER * rows_with(found.groups)
    yield "labelled template", np.where(labelled & one_answer, pairs, 0), limits.max_labelled_template
    yield "template", np.where(found.words >= limits.template_words, found.groups, 0), limits.max_template
    yield "source", found.sources, limits.max_source


def _heaviest(
    common: str, split: str | None, keys: Keys, counted: NDArray[np.bool_], limit: float, min_rows: int
) -> Heaviest:
    positions = np.flatnonzero(counted)
    values, first, counts = np.unique(keys[positions], return_index=True, return_counts=True)
    counts = np.where(values == 0, 0, counts)
    top = int(counts.argmax()) if len(counts) else 0
    most, at = (int(counts[top]), int(positions[first[top]])) if len(counts) else (0, 0)
    too_many = most >= min_rows and most / len(positions) > limit
    return Heaviest(common, split, most, len(positions), limit, at, too_many)


def refuse_concentrated(heaviest: Sequence[Heaviest], named: Mapping[int, Candidate]) -> None:
    """Raise InputError for whatever is too frequent, with the item by id, line and text."""
    refused = [one for one in heaviest if one.refused]
    if not refused:
        return
    lines = []
    for one in refused:
        words, setting = WORDS[one.common]
        rows = "rows" if one.split is None else f"rows of the {one.split} split"
        lines.append(
            f"  - {one.rows:,} of {one.of:,} {rows} ({one.share:.1%}) {words}; data.concentration.{setting} allows "
            f"{one.limit:.1%}\n    {describe(named[one.first])}"
        )
    setting = WORDS[refused[0].common][1]
    raise InputError(
        "the data is concentrated on a single item, which is how a policy is poisoned:\n" + "\n".join(lines),
        where=describe_place(named[refused[0].first]),
        how="look at that item, and remove the repeats; if they are meant, raise "
        f"data.concentration.{setting} and say why in the configuration",
    )


def describe(candidate: Candidate) -> str:
    """An item for a message: its first place, its id, its text and its answer."""
    item = _named(candidate)
    return (
        f"{describe_place(candidate)}, source {item['source']!r}, id {item['id']!r}, answer {item['answer']!r}: "
        f"{item['text']!r}"
    )


def describe_place(candidate: Candidate) -> str:
    return "a generated row" if candidate.line is None else f"first at line {candidate.line} of the source"


def _named(candidate: Candidate) -> dict[str, Any]:
    prompt = candidate.prompt
    return {
        "id": prompt.id,
        "line": candidate.line,
        "source": shorten(prompt.source),
        "text": shorten(prompt.text),
        "answer": shorten(prompt.answer),
    }


def shorten(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
