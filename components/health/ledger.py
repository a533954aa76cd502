"""The ledger of a run (stand-in)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from components.errors import InputError
from components.files import read_jsonl
from components.types import Change, Outcome, Response


@dataclass(frozen=True)
class Ledger:
    """Responses and their outcomes, in order."""

    responses: tuple[Response, ...] = ()
    outcomes: tuple[Outcome, ...] = ()


def read_ledger(path: Path) -> Ledger:
    """Read it back."""
    responses, outcomes = [], []
    for row in read_jsonl(path):
        fields = {key: value for key, value in row.items() if key != "kind"}
        if row.get("kind") == "response":
            changes = tuple(Change(**change) for change in fields.pop("changes"))
            quarantined = tuple(fields.pop("quarantined"))
            responses.append(Response(**fields, changes=changes, quarantined=quarantined))
        elif row.get("kind") == "outcome":
            outcomes.append(Outcome(**fields))
        else:
            raise InputError("not a line of a ledger", where=path)
    return Ledger(tuple(responses), tuple(outcomes))
