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
    """Finish what a kill interrupted: put back a folder that was on its way out, drop temporary ones. What a process
    that lives is filling is locked, and stays."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}(\.old)?")  # as tempfile names them
    torn = sorted(one for one in path.parent.iterdir() if ours.fullmatch(one.name))
    for folder in filter(Path.is_dir, torn):
        filled = folder.with_suffix("") if folder.suffix == ".old" else folder
        lock = _locked(filled, fcntl.LOCK_NB) if filled.exists() else contextlib.nullcontext()
        with contextlib.suppress(FileNotFoundError, BlockingIOError), lock:  # another process removed it, or fills it
            if folder.suffix == ".old" and not path.exists():
                os.replace(folder, path)
            else:
                shutil.rmtree(folder)


@contextlib.contextmanager
def _locked(folder: Path, how: int = 0) -> Iterator[None]:
    """The block has the folder for itself; the kernel ends that with the process at the latest.

    Args:
        how: `fcntl.LOCK_NB` raises BlockingIOError where another one has it; 0 waits.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | how)
        except BlockingIOError:
            raise
        except OSError:  # a file system without locks: a folder that another process fills looks torn there
            pass
        yield
    finally:
        os.close(handle)


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
        self.target, self._lock = target, contextlib.ExitStack()
        while True:  # again where another writer has removed it before it was locked
            self.path = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
            with contextlib.suppress(FileNotFoundError):
                self._lock.enter_context(_locked(self.path))
                if self.path.exists():
                    return
            self._lock.close()

    def commit(self) -> None:
        """Flush what has been written to disk, and let it take the target's place."""
        _flush_tree(self.path)
        os.chmod(self.path, 0o755)
        _swap_in(self.path, self.target)
        self._lock.close()
        fsync_directory(self.target.parent)

    @contextlib.contextmanager
    def discarded_on_error(self) -> Iterator[None]:
        """Remove the temporary folder where the block fails."""
        try:
            yield
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            self._lock.close()
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
