"""Rows from code outside the project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.catalog import Declaration
from components.data.candidates import NOTHING, Candidate, Fault, as_number, as_scalar, as_text, textual
from components.tasks.identity import content_id
from components.types import Prompt

NEEDED = ("question", "answer")


@dataclass(frozen=True)
class SourceEntry(Declaration):
    """``call(seed, settings)`` yields rows: mappings with ``question`` and ``answer``, and optionally ``solution`` (the
    answer included), ``id``, ``family``, ``origin`` and ``difficulty``; other keys are ignored. The same seed gives the
    same rows.
    """


def candidate(row: Any, number: int, name: str) -> Candidate:
    """The row as a candidate of the source ``name``; what is wrong with it is its own fault, as in a file."""
    if not isinstance(row, Mapping):
        return Candidate.broken(number, repr(row)[:4096], Fault("not_object", f"a row is a {type(row).__name__}"))
    cells = {str(key): as_scalar(value) for key, value in row.items()}
    if missing := [column for column in NEEDED if column not in row]:
        return Candidate(NOTHING, cells, number, Fault("missing_column", f"the row has no {', '.join(missing)}"))
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
