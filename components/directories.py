"""Writing folders so that a crash never leaves half of one: filled under a temporary name, flushed, renamed whole."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from components.files import fsync_directory, os_errors

T = TypeVar("T")
FLUSHES = 4
"""Files that are flushed at once; the disk takes several together."""


def _remove_torn(path: Path) -> None:
    """Finish what a kill interrupted: put back a folder that was on its way out, drop temporary ones."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}(\.old)?")  # as tempfile names them
    found = sorted(one for one in path.parent.iterdir() if ours.fullmatch(one.name))
    torn = [one for one in found if not _being_filled(one.with_suffix("") if one.suffix == ".old" else one)]
    retired = [folder for folder in torn if folder.suffix == ".old"]
    if retired and not path.exists():
        os.replace(retired.pop(), path)
        torn = [folder for folder in torn if folder.exists()]
    for folder in filter(Path.is_dir, torn):
        with contextlib.suppress(FileNotFoundError):  # another process has just removed it
            shutil.rmtree(folder)


def _lock(folder: Path) -> int:
    """A handle that holds the lock of a folder until it is closed, by the kernel at the latest.

    Raises:
        BlockingIOError: another one holds it.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:  # a file system without locks: then a folder that another process fills looks torn
        pass
    return handle


def _being_filled(folder: Path) -> bool:
    """Whether a process that lives fills this temporary folder."""
    try:
        os.close(_lock(folder))
    except BlockingIOError:
        return True
    except OSError:  # it is gone, or no folder
        return False
    return False


def write_directory(path: Path, fill: Callable[[Path], T]) -> T:
    """Replace the folder ``path`` by what ``fill`` writes into a temporary one; returns what ``fill`` does.

    ``fill`` gets an empty folder on the same disk. Nothing is visible under ``path`` until all of it is written.
    """
    with os_errors("write", path):
        staged = StagedDirectory(path)
        with staged.discarded_on_error():
            result = fill(staged.path)
            staged.commit()
    return result


class StagedDirectory:
    """A folder that is being filled under a temporary name, ``path``, next to its ``target``. It is locked meanwhile,
    so that another process which writes the same target does not take it for what a kill left."""

    def __init__(self, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_torn(target)
        self.target, self.path = target, Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        self._lock: int | None = _lock(self.path)

    def commit(self) -> None:
        """Flush what has been written to disk, and let it take the target's place."""
        _flush_tree(self.path)
        os.chmod(self.path, 0o755)
        _swap_in(self.path, self.target)
        self._unlock()
        fsync_directory(self.target.parent)

    def _unlock(self) -> None:
        handle, self._lock = self._lock, None
        if handle is not None:
            os.close(handle)

    @contextlib.contextmanager
    def discarded_on_error(self) -> Iterator[None]:
        """Remove the temporary folder where the block fails."""
        try:
            yield
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            self._unlock()
            raise


def _swap_in(staging: Path, path: Path) -> None:
    """Rename ``staging`` to ``path``; what was there before goes, or comes back when the rename fails."""
    retired = staging.with_name(f"{staging.name}.old")
    replaces = path.exists()
    if replaces:
        os.replace(path, retired)
    try:
        os.replace(staging, path)
    except BaseException:
        if replaces:
            os.replace(retired, path)
        raise
    if replaces:
        shutil.rmtree(retired)


def _flush_tree(directory: Path) -> None:
    with ThreadPoolExecutor(FLUSHES) as pool:
        list(pool.map(_flush, (directory, *directory.rglob("*"))))


def _flush(path: Path) -> None:
    if path.is_file():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    elif path.is_dir():
        fsync_directory(path)
