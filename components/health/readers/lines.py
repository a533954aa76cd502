"""The lines of a log that may still be written, and of which nothing is taken for granted; what counts as a number in
it, and JSON objects out of lines that may be anything."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import os_errors
from components.opening import open_regular

COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
HEAD = 64 * 1024
"""Characters that are looked at to distinguish text from other data, and a document from lines."""
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_NOT_FINITE = re.compile(r"[-+]?(?:nan|inf(?:inity)?)", re.IGNORECASE)

MOST_STEPS = 2**53
"""From here on a float no longer distinguishes successive whole numbers."""


def read_head(path: Path) -> str:
    """The beginning of a log.

    Raises:
        InputError: there is no such file, it is no regular one, it is empty, or it is no text.
    """
    with os_errors("read", path), _text(path) as file:
        head = file.read(HEAD)
    if not head.strip():
        raise InputError("the log is empty", where=path, how="name the file that the trainer writes its metrics to")
    if "\0" in head:
        raise InputError("not a text", where=path, how="name a log in text or JSON, not an event or binary file")
    return head


def lines(path: Path) -> Iterator[tuple[str, bool]]:
    """Every line that is not blank, without colours, and whether it was ended: a log cut mid-line ends without.

    A progress bar's returns end lines too, and bytes that are no UTF-8 (two processes, one file) are replaced: a line
    is used only if what it says can be read, so neither can turn into a number.
    """
    with os_errors("read", path), _text(path) as file:
        for line in file:
            if line.strip():
                yield COLOURS.sub("", line).rstrip("\n"), line.endswith("\n")


def _text(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(open_regular(path, how="check the path"), encoding="utf-8-sig", errors="replace")


def as_number(value: Any) -> float | None:
    """A number as a float, NaN and infinity included; None for everything else.

    Text is no number, whatever it spells; only the names of NaN and infinity, which some JSON writers put into quotes,
    are taken for what they say: a broken number must not pass for a missing one.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return float(value) if isinstance(value, str) and _NOT_FINITE.fullmatch(value.strip()) else None


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object that the text is, or None."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def as_step(value: Any) -> int | None:
    """The number of a step: whole, at least 0 and below `MOST_STEPS`; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < MOST_STEPS:
        return None
    return int(value) if value == int(value) else None
