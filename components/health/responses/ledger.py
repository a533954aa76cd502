"""Reading back what was done about a run, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from components.errors import InputError
from components.files import read_jsonl
from components.types import Outcome, Response

_AGAIN = "run the train stage again"
_ENTRIES: dict[str, TypeAdapter[Response] | TypeAdapter[Outcome]] = {
    "response": TypeAdapter(Response),
    "outcome": TypeAdapter(Outcome),
}
_FIELDS = {"response": {field.name for field in fields(Response)}, "outcome": {field.name for field in fields(Outcome)}}
LATER = {"below", "back_progress", "part", "found", "undoes", "useless"}
"""Fields that entries of older runs do not have."""


@dataclass(frozen=True)
class Ledger:
    """Responses in order, and the outcome of each that has one, by its number."""

    responses: tuple[Response, ...] = ()
    outcomes: tuple[Outcome, ...] = ()

    def outcome(self, response: Response) -> Outcome | None:
        """The latest outcome of a response."""
        return self._by_number.get(response.number)

    @cached_property
    def _by_number(self) -> dict[int, Outcome]:
        return {one.of: one for one in self.outcomes}


def read_ledger(path: Path) -> Ledger:
    """The ledger of a run; empty where nothing was ever said.

    Raises:
        InputError: a missing file, or a line that is no entry.
    """
    entries = [_entry(row, f"{path}, entry {n}") for n, row in enumerate(read_jsonl(path, how=_AGAIN), start=1)]
    responses = tuple(entry for entry in entries if isinstance(entry, Response))
    return Ledger(responses, tuple(entry for entry in entries if isinstance(entry, Outcome)))


def _entry(row: dict[str, Any], where: str) -> Response | Outcome:
    kind = row.pop("kind", None)
    if not isinstance(kind, str) or kind not in _ENTRIES or not _FIELDS[kind] - LATER <= set(row) <= _FIELDS[kind]:
        raise InputError("not an entry of a ledger", where=where, how=_AGAIN)
    try:
        return _ENTRIES[kind].validate_python(row)
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise InputError(f"not an entry of a ledger: {problem}", where=where, how=_AGAIN) from error
