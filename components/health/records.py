"""Reading back what a run logged, one `StepRecord`, `Verdict` or entry of the ledger a line, and which of its steps the
final weights never saw, because a roll-back went back before them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from components.errors import InputError
from components.files import read_jsonl
from components.types import Outcome, Response, StepRecord, Verdict

NOT_FINITE = "not_finite"
"""Note of a record of another trainer's log: the signals that it gives as NaN or infinite in this step."""
LATER = {"clean", "below", "back_progress", "part", "found", "undoes", "useless"}
"""Fields that verdicts, responses and outcomes of older runs do not have."""
_ENTRIES: dict[str, tuple[type, TypeAdapter[Response] | TypeAdapter[Outcome]]] = {
    "response": (Response, TypeAdapter(Response)),
    "outcome": (Outcome, TypeAdapter(Outcome)),
}
ENTRY: TypeAdapter[Response | Outcome] = TypeAdapter(Response | Outcome)
"""Of a ledger that is read while it is written: its lines are those of this version."""
_AGAIN = "run the train stage again"


def _has_fields(row: dict[str, Any], kind: Any) -> bool:
    names = {field.name for field in fields(kind)}
    return names - LATER <= set(row) <= names


def read_records(path: Path) -> list[StepRecord]:
    """The steps of a run, in order.

    Raises:
        InputError: a missing file, a line that is not a record, or steps that do not increase.
    """
    records: list[StepRecord] = []
    for number, row in enumerate(read_jsonl(path, how=_AGAIN), start=1):
        if not _is_record(row):
            raise InputError("not a step record", where=f"{path}, record {number}", how=_AGAIN)
        if records and row["step"] <= records[-1].step:
            raise InputError(f"step {row['step']} is out of order", where=f"{path}, record {number}", how=_AGAIN)
        signals = {sys.intern(name): value for name, value in row["signals"].items()}  # else each has names of its own
        records.append(StepRecord(row["step"], signals, row["notes"]))
    return records


def _is_record(row: dict[str, Any]) -> bool:
    if not _has_fields(row, StepRecord):
        return False
    step, signals, notes = row["step"], row["signals"], row["notes"]
    if type(step) is not int or not isinstance(signals, dict) or not isinstance(notes, dict):
        return False
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in signals.values())


def read_verdicts(path: Path) -> list[Verdict]:
    """What the monitor said during a run, in order.

    Raises:
        InputError: a missing file, or a line that is not a verdict.
    """
    verdicts = []
    for number, row in enumerate(read_jsonl(path, how=_AGAIN), start=1):
        if not _has_fields(row, Verdict):
            raise InputError("not a verdict", where=f"{path}, verdict {number}", how=_AGAIN)
        verdicts.append(Verdict(**row))
    return verdicts


@dataclass(frozen=True, slots=True)
class Discarded:
    """Steps ``first`` to ``last`` of the record, thrown away by the response ``by``."""

    first: int
    last: int
    by: int
    steps: int


def discarded(steps: Sequence[int], responses: Iterable[Response]) -> list[Discarded]:
    """What every roll-back threw away.

    Args:
        steps: the record's steps, in order; they go on counting after a roll-back.
        responses: those of the run. One with ``back_to`` went back to the state before the step of that number.
    """
    found = []
    kept: list[int] = []
    waiting = list(steps)
    for response in sorted((one for one in responses if one.back_to is not None), key=lambda one: one.number):
        kept += [step for step in waiting if step <= response.step]
        waiting = [step for step in waiting if step > response.step]
        back = response.back_to or 0
        gone, kept = [step for step in kept if step >= back], [step for step in kept if step < back]
        found += [Discarded(part[0], part[-1], response.number, len(part)) for part in _runs(gone, steps)]
    return found


def undone(steps: Sequence[int], responses: Iterable[Response]) -> set[int]:
    """The steps of the record that the final weights never saw; arguments as of `discarded`."""
    parts = discarded(steps, responses)
    return {step for step in steps if any(part.first <= step <= part.last for part in parts)}


def _runs(gone: Sequence[int], steps: Sequence[int]) -> list[list[int]]:
    """Parts without a step between them that is not gone."""
    place = {step: index for index, step in enumerate(steps)}
    parts = [[step] for step in gone[:1]]
    for before, after in pairwise(gone):
        if place[after] == place[before] + 1:
            parts[-1].append(after)
        else:
            parts.append([after])
    return parts


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
    kind, adapter = _ENTRIES.get(str(row.pop("kind", None)), (None, None))
    if kind is None or adapter is None or not _has_fields(row, kind):
        raise InputError("not an entry of a ledger", where=where, how=_AGAIN)
    try:
        return adapter.validate_python(row)
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise InputError(f"not an entry of a ledger: {problem}", where=where, how=_AGAIN) from error
