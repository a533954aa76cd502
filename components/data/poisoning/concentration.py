"""How much of the data is one thing. Repeats are counted before uniqueness sets them aside without much ado."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.config.data import ConcentrationSettings
from components.data.candidates import Candidate
from components.data.survey import Keys, Survey, mix
from components.errors import InputError

SHOWN_CHARS = 200
WORDS: Mapping[str, tuple[str, str]] = {
    "item": ("are one question, equal or nearly so", "max_item"),
    "labelled template": (
        "are one template (numbers and quoted names masked) with one and the same answer",
        "max_labelled_template",
    ),
    "template": ("are one template (numbers and quoted names masked)", "max_template"),
    "source": ("come from one source", "max_source"),
}
"""Kind -> what its rows have in common, and the setting that limits it."""


@dataclass(frozen=True, slots=True)
class Heaviest:
    """The most frequent item, template or source: how many rows it has, and the position of its first one."""

    kind: str
    rows: int
    share: float
    limit: float
    first: int
    refused: bool

    def to_dict(self, named: Mapping[int, Candidate]) -> dict[str, Any]:
        """As `validation.json` has it, with the item by id, line and text."""
        candidate = named.get(self.first)
        return {
            "kind": self.kind,
            "rows": self.rows,
            "share": self.share,
            "limit": self.limit,
            "success": not self.refused,
            "item": None if candidate is None else _named(candidate),
        }


def concentration(found: Survey, limits: ConcentrationSettings, computed: bool) -> list[Heaviest]:
    """The heaviest item, labelled template, template and source.

    ``computed``: labels and wordings are a generator's, so that only repeats of items count.
    """
    return [_heaviest(kind, keys, limit, limits.min_rows, found.rows) for kind, keys, limit in _kinds(found, limits)][
        : 1 if computed else None
    ]


def _kinds(found: Survey, limits: ConcentrationSettings) -> Iterator[tuple[str, Keys, float]]:
    worded = found.words >= limits.template_words
    yield "item", found.items, limits.max_item
    labelled = worded & (found.answers != 0)
    yield "labelled template", np.where(labelled, mix(found.groups, found.answers), 0), limits.max_labelled_template
    yield "template", np.where(worded, found.groups, 0), limits.max_template
    yield "source", found.sources, limits.max_source


def _heaviest(kind: str, keys: Keys, limit: float, min_rows: int, rows: int) -> Heaviest:
    values, first, counts = np.unique(keys, return_index=True, return_counts=True)
    counts = np.where(values == 0, 0, counts)
    top = int(counts.argmax()) if len(counts) else 0
    most, at = (int(counts[top]), int(first[top])) if len(counts) else (0, 0)
    share = most / rows if rows else 0.0
    return Heaviest(kind, most, share, limit, at, most >= min_rows and share > limit)


def refuse_concentrated(heaviest: Sequence[Heaviest], named: Mapping[int, Candidate], rows: int) -> None:
    """Raise InputError for whatever is too frequent, with the item by id, line and text."""
    refused = [one for one in heaviest if one.refused]
    if not refused:
        return
    lines = []
    for one in refused:
        common, setting = WORDS[one.kind]
        lines.append(
            f"  - {one.rows:,} of {rows:,} rows ({one.share:.1%}) {common}; data.concentration.{setting} allows "
            f"{one.limit:.1%}\n    {describe(named[one.first])}"
        )
    setting = WORDS[refused[0].kind][1]
    raise InputError(
        "the data is concentrated on a single item, which is how a policy is poisoned:\n" + "\n".join(lines),
        where=describe_place(named[refused[0].first]),
        how="look at that item, and remove the repeats; if they are meant, raise "
        f"data.concentration.{setting} and say why in the configuration",
    )


def describe(candidate: Candidate) -> str:
    """An item in words: where it stands first, its id, its text and its answer."""
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
