"""A log of whatever trainer, read whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from components.errors import InputError
from components.health.readers import jsonl, prime_rl, trl, verl
from components.health.readers.doubts import doubts
from components.health.readers.lines import lines, read_head
from components.health.readers.names import NAMES_FOLDER, Names, load_names, own_names
from components.health.readers.steps import Row, Steps
from components.types import StepRecord

READERS: dict[str, Callable[[str], Row | None]] = {
    "trl": jsonl.row,
    "verl": verl.row,
    "prime-rl": prime_rl.row,
    "jsonl": jsonl.row,
}
"""What makes a row of a line, by the name of the format."""

SAMPLE = 200
"""Rows by whose names a format is recognised."""

_NAME_IT = f"name the format: --format {'|'.join(READERS)}"


@dataclass(frozen=True)
class Log:
    """What a file holds: its format, whose names it uses, a record a step, and what was not as it should be."""

    format: str
    trainer: str
    records: list[StepRecord]
    remarks: list[str]


def read_log(path: Path, format: str = "auto", names: Path | None = None) -> Log:
    """Read a log of ``format`` (a key of `READERS`, or ``auto``) by the mapping file ``names``, or by the shipped one.

    Raises:
        InputError: no such file or format; a mapping that is wrong; no step in the file, or none that a rule could
            read. What is wrong with single lines is stated in `Log.remarks`; the rest is read.
    """
    if format not in (*READERS, "auto"):
        raise InputError(f"unknown format {format!r}", where="--format", how=f"use auto, {', '.join(READERS)}")
    head = read_head(path)
    chosen = detect(path, head) if format == "auto" else format
    mapping = load_names(names) if names else names_of(chosen)
    steps = Steps(mapping)
    remarks: list[str] = []
    seen = unread = 0
    for row in _rows(path, head, chosen, remarks):
        if row is None:
            unread += 1
        else:
            seen += 1
            steps.add(row)
    records = steps.records()
    if not records:
        raise _nothing(path, head, chosen, seen)
    if unread:
        remarks.append(f"lines passed over, which are no metrics of {chosen}: {unread}")
    return Log(chosen, mapping.trainer or chosen, records, [*steps.remarks(), *doubts(records), *remarks])


def _rows(path: Path, head: str, format: str, remarks: list[str]) -> Iterator[Row | None]:
    """Every row, and None for what is none. A last line without its end is used only if it is a whole JSON object."""
    if format == "trl" and trl.is_document(head):
        yield from trl.document(path)
        return
    for line, ended in lines(path):
        if ended or jsonl.row(line) is not None:
            yield READERS[format](line)
        else:
            remarks.append("the last line is cut off and was left out")


def names_of(format: str) -> Names:
    """The mapping that is shipped for a format; our own names for plain JSON lines."""
    return own_names() if format == "jsonl" else load_names(NAMES_FOLDER / f"{format}.yaml")


def detect(path: Path, head: str) -> str:
    """The format of a log, by its form and then by the names in it.

    Raises:
        InputError: it is none of them.
    """
    if trl.is_document(head):
        return "trl"
    found = list(islice(_recognised(path), SAMPLE))
    consoles = [name for name, _ in found if name != "jsonl"]
    if consoles:
        return consoles[0]
    if not found:
        how = f"{_NAME_IT}; known are trainer_state.json, the consoles of verl and prime-rl, and JSON lines with a step"
        raise InputError("no line of it is a step in a known format", where=path, how=how)
    used = {name for _, row in found for name in row.values}
    counts = {name: names_of(name).count(used) for name in ("jsonl", *READERS)}
    return max(counts, key=lambda name: counts[name])


def _recognised(path: Path) -> Iterator[tuple[str, Row]]:
    """The lines that are a step, each with the format that its form shows; JSON is ``jsonl``."""
    for line, _ in lines(path):
        for name, reader in (("jsonl", jsonl.row), ("verl", verl.console_row), ("prime-rl", prime_rl.console_row)):
            if row := reader(line):
                yield name, row
                break


def _nothing(path: Path, head: str, format: str, seen: int) -> InputError:
    """Why there is nothing to judge: another format, no step, or no metric that is known."""
    try:
        other = detect(path, head)
    except InputError as error:
        return InputError(f"no step in it as {format}", where=path, how=error.how)
    if seen:
        what = f"{seen} rows read as {format}, and in them no metric that a rule could read"
        how = "map their names to ours: --names mapping.yaml; configs/health/names has examples"
    else:
        what, how = f"no step in it as {format}", "wait until the trainer has logged a step"
    if other != format:
        what, how = f"{what}; it looks like {other}", f"--format {other}"
    return InputError(what, where=path, how=how)
