"""The lines of a log that may still be written, and of which nothing is taken for granted."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

from components.errors import InputError
from components.files import os_errors
from components.opening import open_regular

COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
HEAD = 64 * 1024
"""Characters that are looked at to distinguish text from other data, and a document from lines."""


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
