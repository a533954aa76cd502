"""Rows from code outside the project."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from components.catalog import Catalog, Declaration
from components.config.extensions import PythonEntry
from components.content_id import content_id
from components.data.candidates import NOTHING, Candidate, Fault, as_number, as_scalar, as_text, textual
from components.errors import InputError
from components.types import Prompt

NEEDED = ("question", "answer")


@dataclass(frozen=True)
class SourceEntry(Declaration):
    """``call(seed, settings)`` yields rows: mappings with ``question`` and ``answer``, and optionally ``solution`` (the
    answer included), ``id``, ``family``, ``origin`` and ``difficulty``; other keys are ignored. The same seed gives the
    same rows.
    """


OUTSIDE: Catalog[SourceEntry] = Catalog(SourceEntry, {})


def candidates(entry: PythonEntry, seed: int, name: str) -> Iterator[Candidate]:
    """The rows of an entry from outside, as candidates of the source ``name``."""
    for number, row in enumerate(OUTSIDE.choose(entry)(seed), start=1):
        yield candidate(row, number, name)


def prompts_of(entry: PythonEntry, seed: int, name: str) -> list[Prompt]:
    """The same as prompts.

    Raises:
        InputError: a row cannot be read; the first such row is named.
    """
    found = list(candidates(entry, seed, name))
    for one in found:
        if why := _wrong(one):
            raise InputError(f"row {one.line} is not a problem: {why}", where=entry.target, how="correct the code")
    return [one.prompt for one in found]


def _wrong(one: Candidate) -> str:
    """Why a row is no problem; "" where it is one."""
    if one.fault is not None:
        return one.fault.words
    if one.not_text or not (one.prompt.text and one.prompt.answer):
        return "its question or answer is empty or not text"
    if not one.prompt.id:
        return "its id is empty or not text"
    return "its difficulty is not a finite number" if math.isnan(one.prompt.difficulty) else ""


def candidate(row: Any, number: int, name: str) -> Candidate:
    """The row as a candidate of the source ``name``; what is wrong with it is its own fault, as in a file."""
    if not isinstance(row, Mapping):
        return Candidate.broken(number, repr(row)[:4096], Fault("not_object", f"a row is a {type(row).__name__}"))
    cells = {str(key): as_scalar(value) for key, value in row.items()}
    if missing := [column for column in NEEDED if column not in row]:
        return Candidate(NOTHING, cells, number, Fault("missing_column", f"the row has no {', '.join(missing)}"))
    if "origin" in row and not as_text(row["origin"]):
        return Candidate(NOTHING, cells, number, Fault("empty_origin", "the row's origin is empty"))
    text, answer = as_text(row["question"]), as_text(row["answer"])
    solution = as_text(row.get("solution", answer))
    prompt = Prompt(
        id=as_text(row["id"]) if "id" in row else content_id(name, text),
        text=text,
        answer=answer,
        solution=solution,
        demonstration=solution,
        task=name,
        source=as_text(row.get("origin", name)),
        family=as_text(row.get("family", name)),
        difficulty=as_number(row.get("difficulty", 0.0)),
    )
    return Candidate(prompt, cells, number, not_text=frozenset(key for key in NEEDED if not textual(row[key])))
