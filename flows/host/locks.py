"""Locks that whole commands hold on a file. The kernel ends a lock with its process, however that ends.

`filelock` is the same system call, without a way to name the holder.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from components.files import os_errors


class Lock:
    """The lock on an open file, not taken yet."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def take(self) -> bool:
        """Take it and leave this process's id in the file; False where another process holds it."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, str(os.getpid()).encode(), 0)
        return True

    def wait(self) -> None:
        """Take it as soon as no other process holds it."""
        fcntl.flock(self._handle, fcntl.LOCK_EX)

    @property
    def owner(self) -> str:
        """The id of the process that took it last, as that wrote it."""
        return os.pread(self._handle, 32, 0).decode() or "unknown"


@contextmanager
def lock_file(path: Path) -> Iterator[Lock]:
    """A lock on ``path``, which is made where it is missing; what was taken inside the block ends with it.

    Raises:
        InputError: the file cannot be made.
    """
    with os_errors("lock", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield Lock(handle)
    finally:
        os.close(handle)
