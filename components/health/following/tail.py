"""The new lines of a file that another program writes. It is only ever read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from components.errors import InputError
from components.health.readers.lines import COLOURS
from components.opening import open_regular

LONGEST = 4 * 2**20
"""Bytes of a line without an end, from which on it is dropped: it is no row of metrics."""
CHUNK = 2**20
_ENDS = re.compile(rb"[\r\n]+")


class Lines:
    """Bytes that come in pieces, as whole lines of text without colours; a progress bar's returns end lines, too."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, data: bytes) -> Iterator[str]:
        """The lines that these bytes end."""
        *whole, rest = _ENDS.split(self._rest + data)
        self._rest = rest if len(rest) < LONGEST else b""
        return (COLOURS.sub("", line.decode("utf-8", "replace")) for line in whole if line.strip())

    def forget(self) -> None:
        """Drop a line that has no end yet."""
        self._rest = b""


class Tail:
    """One file. It may not be there yet; it may be cut short and written again, or another one may take its place
    (rotation): then the old one is read to its end, and the new one from its beginning."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BufferedReader | None = None
        self._lines = Lines()

    def read(self) -> Iterator[str]:
        """What is new since the last call.

        Raises:
            InputError: the path is no regular file, or cannot be read.
        """
        yield from self._rest()
        if self._replaced():
            self.close()
            yield from self._rest()

    def _rest(self) -> Iterator[str]:
        if self._file is None and self._path.exists():
            self._file = open_regular(self._path, how="name the file that the trainer writes its metrics to")
            self._lines.forget()
        if self._file is None:
            return
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            self._lines.forget()
        while data := self._file.read(CHUNK):
            yield from self._lines.take(data)

    def _replaced(self) -> bool:
        """Whether another file stands at the path by now; while none does, the old one is kept."""
        if self._file is None:
            return False
        try:
            now = os.stat(self._path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise InputError(f"cannot look at the log: {error}", where=self._path, how="check the path") from error
        mine = os.fstat(self._file.fileno())
        return (now.st_ino, now.st_dev) != (mine.st_ino, mine.st_dev)

    def close(self) -> None:
        """Leave the file."""
        if self._file is not None:
            self._file.close()
        self._file = None
