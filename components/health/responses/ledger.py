"""Reading back what was done about a run, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import read_jsonl
from components.types import Change, Outcome, Response

_AGAIN = "run the train stage again"


@dataclass(frozen=True, slots=True)
class Ledger:
    """Responses in order, and the outcome of each that has one, by its number."""

    responses: tuple[Response, ...] = ()
    outcomes: tuple[Outcome, ...] = ()

    def outcome(self, response: Response) -> Outcome | None:
        """What became of a response."""
        return next((one for one in self.outcomes if one.of == response.number), None)


def read_ledger(path: Path) -> Ledger:
    """The ledger of a run; empty where nothing was ever said.

    Raises:
        InputError: a missing file, or a line that is no entry.
    """
    responses, outcomes = [], []
    for number, row in enumerate(read_jsonl(path, how=_AGAIN), start=1):
        kind = row.pop("kind", None)
        if kind == "response" and set(row) == {field.name for field in fields(Response)}:
            responses.append(_response(row))
        elif kind == "outcome" and set(row) == {field.name for field in fields(Outcome)}:
            outcomes.append(Outcome(**row))
        else:
            raise InputError("not an entry of a ledger", where=f"{path}, entry {number}", how=_AGAIN)
    return Ledger(tuple(responses), tuple(outcomes))


def _response(row: Mapping[str, Any]) -> Response:
    changes = tuple(Change(**change) for change in row["changes"])
    return Response(**{**row, "changes": changes, "quarantined": tuple(row["quarantined"])})
