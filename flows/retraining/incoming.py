"""The folder that new data arrive in."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from components.errors import InputError
from components.files import os_errors

SUFFIX = ".jsonl"
SETTLED = 60.0
"""Seconds since the last write: a younger file may still be written."""
LONGEST_LINE = 2**24
"""Bytes, as in `components.data.sources`: what follows the last line break of a file and is longer is no row."""


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file of the folder that does not join, and why."""

    name: str
    why: str


def scan(folder: Path, now: float) -> tuple[list[Path], list[SkippedFile]]:
    """The whole JSON-lines files of a folder by name, and the files that are skipped. Hidden files are ignored.

    Args:
        now: when the night began, in seconds since the epoch; what was written since waits as well.

    Raises:
        InputError: there is no such folder, or a file of it cannot be read.
    """
    if not folder.is_dir():
        raise InputError("no folder for incoming data", where=folder, how="make it (mkdir), or name another one")
    whole, skipped = [], []
    with os_errors("read", folder):
        for path in sorted(folder.iterdir()):
            if path.name.startswith("."):
                continue
            shown = os.fsencode(path.name).decode(errors="backslashreplace")
            why = "is not read: its name is not Unicode" if shown != path.name else _skip_reason(path, now)
            if why:
                skipped.append(SkippedFile(shown, why))
            else:
                whole.append(path)
    return whole, skipped


def _skip_reason(path: Path, now: float) -> str:
    """Why a file does not join; empty if it joins."""
    if path.is_symlink() or not path.is_file():
        return "is not read: it is no file of its own (a folder, a link)"
    if path.suffix != SUFFIX:
        return f"is not read: its name does not end in {SUFFIX}"
    status = path.stat()
    if now - SETTLED < status.st_mtime < max(now, time.time()) + SETTLED:  # later than that, a clock was wrong
        return "waits for the next night: it was written less than a minute ago"
    if not status.st_size:
        return "waits for the next night: it is empty"
    if not _is_complete(path, status.st_size):
        return "waits for the next night: its last line is not whole"
    return ""


def _is_complete(path: Path, size: int) -> bool:
    """Whether the last line has its line break, or is a JSON object without one."""
    with path.open("rb") as file:
        file.seek(max(0, size - LONGEST_LINE))
        tail = file.read(LONGEST_LINE)
    if tail.endswith(b"\n"):
        return True
    try:
        return isinstance(json.loads(tail.rsplit(b"\n", 1)[-1].decode("utf-8-sig")), dict)
    except (ValueError, RecursionError):
        return False


def blocks(path: Path) -> Iterator[bytes]:
    """The bytes that a file has now, a mebibyte at a time."""
    left = os.stat(path).st_size
    with path.open("rb") as file:
        while left > 0 and (block := file.read(min(left, 2**20))):
            left -= len(block)
            yield block
