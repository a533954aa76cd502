"""A row that may be admitted. No row is refused here: what cannot be read stays empty, and validation reports it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from components.config.sources import FileSource
from components.content_id import content_id
from components.errors import InputError
from components.patterns import compile_pattern
from components.tasks import FORMATS
from components.types import Prompt

JsonScalar = str | int | float | bool | None
NOTHING = Prompt("", "", "", "")
SHOWN_CHARS = 500
"""Of a line that is no row: enough to recognise it in quarantine."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a line is no row at all: a code of `components.data.codes`, and the words."""

    code: str
    words: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """The prompt that a row would be, the columns it came from, and its line (from 1; None when it was generated).

    Fields that the row lacks, or holds in an unreadable form, are empty texts or a NaN difficulty; ``not_text`` names
    those that held something else than text. A line that is no row at all has a ``fault`` and no prompt.
    """

    prompt: Prompt
    row: Mapping[str, JsonScalar]
    line: int | None
    fault: Fault | None = None
    not_text: frozenset[str] = frozenset()

    @classmethod
    def broken(cls, line: int, text: str, fault: Fault) -> Candidate:
        """A line that could not be read as a row."""
        return cls(NOTHING, {"line": str(as_scalar(text[:SHOWN_CHARS]))}, line, fault)


class RowReader:
    """Turns rows of a file into candidates, by the columns that the settings name.

    Raises:
        ValueError: ``answer_pattern`` is no pattern; settings that were validated have none such.
    """

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self._name = source.name or source.path.stem
        self._pattern = None if source.answer_pattern is None else compile_pattern(source.answer_pattern)
        self._format = FORMATS.get(source.format)

    @property
    def columns(self) -> list[str]:
        """The columns that every row must have."""
        s = self._source
        return [name for name in (s.id, s.question, s.answer, s.family, s.origin, s.difficulty) if name is not None]

    def candidate(self, row: Mapping[str, Any], line: int) -> Candidate:
        """The row as a candidate; a missing column is its fault."""
        s = self._source
        cells = {column: as_scalar(row[column]) for column in self.columns if column in row}
        if missing := [column for column in self.columns if column not in row]:
            error = missing_columns(missing, row, "")
            return Candidate(NOTHING, cells, line, Fault("missing_column", f"{error.what} ({found(row)})"))
        if s.origin is not None and not as_text(row[s.origin]):
            return Candidate(NOTHING, cells, line, Fault("empty_origin", f"the origin, column {s.origin!r}, is empty"))
        text, published = as_text(row[s.question]), as_text(row[s.answer])
        answer, solution = self._answer(published)
        prompt = Prompt(
            id=as_text(row[s.id]) if s.id is not None else content_id(self._name, text),
            text=text,
            answer=answer,
            solution=solution,
            demonstration=solution,
            task=self._name,
            source=as_text(row[s.origin]) if s.origin is not None else self._name,
            family=as_text(row[s.family]) if s.family is not None else self._name,
            difficulty=as_number(row[s.difficulty]) if s.difficulty is not None else 0.0,
        )
        named = {"question": s.question, "answer": s.answer, "id": s.id}
        odd = frozenset(field for field, column in named.items() if column and not textual(row[column]))
        return Candidate(prompt, cells, line, not_text=odd)

    def _answer(self, published: str) -> tuple[str, str]:
        """Final answer and solution."""
        if self._format is not None:
            return self._format(published)
        if self._pattern is None:
            return published, published
        groups = self._pattern.search(published)
        return ((groups[0] or "").strip() if groups else ""), published


def missing_columns(missing: list[str], present: Mapping[str, Any] | list[str], where: str) -> InputError:
    """The error for columns that a file lacks."""
    return InputError(
        f"missing column{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}",
        where=where,
        how=f"name the right ones under data.source; {found(present)}",
    )


def found(columns: Mapping[str, Any] | list[str]) -> str:
    """The columns that there are, for a message."""
    return f"found: {', '.join(map(repr, columns)) or 'none'}"


def missing(value: Any) -> bool:
    """Whether a cell holds nothing: null, or a number that is none (NaN and infinity are how tables say so)."""
    return value is None or (isinstance(value, float | Decimal) and not math.isfinite(value))


def plain(value: Any) -> bool:
    """Whether it is ASCII text, as most cells are: then no other check is needed."""
    return isinstance(value, str) and value.isascii()


def textual(value: Any) -> bool:
    """Whether a cell holds a text or a number, or nothing; not a list, a truth value or half a character."""
    if plain(value) or missing(value):
        return True
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return False
    return not re.search("[\ud800-\udfff]", str(value))


EXACT = 2**53
"""Whole numbers below it are exact in a float."""


def as_text(value: Any) -> str:
    """Stripped text of a string or a finite number; empty for anything else, and for what UTF-8 cannot hold. Whole
    numbers have no decimal point: a column of integers with a gap comes as floats."""
    if plain(value):
        return str(value).strip()
    if missing(value) or not textual(value):
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    return format(value, "f") if isinstance(value, Decimal) else str(value).strip()


def as_number(value: Any) -> float:
    """A finite number, or NaN."""
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def as_scalar(value: Any) -> JsonScalar:
    """The value as a quarantine line can hold it."""
    if plain(value):
        return str(value)
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value).encode("utf-8", "replace").decode()
