"""Which file that joined is an earlier version of another one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from components.files import os_errors
from flows.retraining.ledger import JoinedFile, Ledger, current

ALIKE = 0.5
"""Of the rows of the shorter of two files of one name: from there on they are two versions of one file. A name that is
used again for other data, as a log's is, has none or few rows in common with what it stood for before."""


def earlier_version(ledger: Ledger, name: str, path: Path) -> JoinedFile | None:
    """The file whose place the one at ``path`` takes.

    One with whose bytes it begins, whatever either is called; else one of its name that is alike.
    """
    rows, size = current(ledger.seen()), path.stat().st_size
    with os_errors("read", path):
        beginnings = _beginnings(path, {row.bytes for row in rows if row.bytes < size})
        begun = (row for row in rows if beginnings.get(row.bytes) == row.sha256)
        same_name = (row for row in rows if row.name == name and _alike(ledger.part(row.sha256), path))
        return next(begun, None) or next(same_name, None)


def _beginnings(path: Path, sizes: Iterable[int]) -> dict[int, str]:
    """Size in bytes -> hex digest of that much of the file."""
    digest, done, found = hashlib.sha256(), 0, {}
    with path.open("rb") as file:
        for size in sorted(sizes):
            while done < size and (block := file.read(min(size - done, 2**20))):
                digest.update(block)
                done += len(block)
            found[size] = digest.hexdigest()
    return found


def _alike(earlier: Path, later: Path) -> bool:
    if not earlier.is_file():
        return False
    first, second = _rows(earlier), _rows(later)
    return len(first & second) >= ALIKE * min(len(first), len(second)) > 0


def _rows(path: Path) -> set[int]:
    with path.open("rb") as file:
        return {hash(row) for line in file if (row := line.strip())}
