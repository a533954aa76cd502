"""Files with the sums that they are stored and sent with."""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from s3transfer.utils import ChunksizeAdjuster

from components.errors import InputError
from components.files import os_errors
from components.opening import open_regular

BLOCK = 2**18
"""Bytes that two things are done with in turn, while the processor's cache has them. Of a pull, a part at a time takes
twice the time in the kernel."""


class Sums:
    """The sha256 of a file and the CRC-32 of each part that it is sent in, in one pass.

    The pass goes as far as a sum is needed. The threads that send the parts share it, and need not wait for its end.
    """

    def __init__(self, path: Path, part_size: int) -> None:
        self._path, self._digest, self._crc32s, self._read = path, hashlib.sha256(), list[int](), 0
        self._lock = threading.Lock()
        with os_errors("read", path), open_regular(path) as file:
            self.size = os.fstat(file.fileno()).st_size
        self._part_size = ChunksizeAdjuster().adjust_chunksize(part_size, self.size)

    def crc32(self, part: int) -> int | None:
        """Of a part, counted from 1; None where the file ends before it."""
        self._advance(part)
        return self._crc32s[part - 1] if part <= len(self._crc32s) else None

    def whole(self) -> tuple[str, int]:
        """The sha256 of the file, and the number of its parts."""
        self._advance(None)
        return self._digest.hexdigest(), len(self._crc32s)

    def _advance(self, parts: int | None) -> None:
        """Continue until the sums of so many parts are known; None: until the file ends."""
        with self._lock:
            if parts is not None and parts <= len(self._crc32s):
                return
            with os_errors("read", self._path), open_regular(self._path) as file:
                file.seek(self._read)
                while (parts is None or len(self._crc32s) < parts) and self._part(file):
                    pass

    def _part(self, file: BufferedReader) -> bool:
        """Read the next part; False where there is none."""
        buffer, crc32, left = memoryview(bytearray(BLOCK)), 0, self._part_size
        while left and (count := file.readinto(buffer[:left])):
            crc32 = zlib.crc32(buffer[:count], crc32)
            self._digest.update(buffer[:count])
            left -= count
        if left == self._part_size:
            return False
        self._crc32s.append(crc32)
        self._read += self._part_size - left
        return True


@dataclass(frozen=True, slots=True)
class Digested:
    """A file, and the sha256 that it is stored under."""

    path: Path
    size: int
    sha256: str
    sums: Sums

    @property
    def changed(self) -> InputError:
        return InputError("the checkpoint changed while it was stored", where=self.path, how="let its writer finish")

    def crc32(self, part: int) -> int:
        """Of a part, counted from 1.

        Raises:
            InputError: the file has fewer parts, so it has changed.
        """
        found = self.sums.crc32(part)
        if found is None:
            raise self.changed
        return found

    def check(self, parts: int | None = None) -> None:
        """Compare what was read of the file with its sha256, and the number of its parts with that of those sent.

        Raises:
            InputError: it has changed.
        """
        sha256, found = self.sums.whole()
        if sha256 != self.sha256 or parts not in (None, found):
            raise self.changed


def digest_file(path: Path, part_size: int, sha256: str | None = None) -> Digested:
    """Digest a file that is going to be sent in parts; one with a known ``sha256`` is read while it is sent."""
    sums = Sums(path, part_size)
    return Digested(path, sums.size, sums.whole()[0] if sha256 is None else sha256, sums)
