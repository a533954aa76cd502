"""Reading back what a run logged: one `StepRecord` or `Verdict` a line."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import read_jsonl
from components.types import StepRecord, Verdict

NOT_FINITE = "not_finite"
"""Note of a record of another trainer's log: the signals that it gives as NaN or infinite in this step."""
_AGAIN = "run the train stage again"


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
    if set(row) != {field.name for field in fields(StepRecord)}:
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
    names = {field.name for field in fields(Verdict)}
    needed = names - {"clean"}  # runs from before roll-backs have none
    verdicts = []
    for number, row in enumerate(read_jsonl(path, how=_AGAIN), start=1):
        if not needed <= set(row) <= names:
            raise InputError("not a verdict", where=f"{path}, verdict {number}", how=_AGAIN)
        verdicts.append(Verdict(**row))
    return verdicts
