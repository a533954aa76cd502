"""Locks that whole commands hold on a file; child processes that never outlive their run, and what is left of runs
whose guardians were killed with them.

The kernel ends a lock with its process, however that ends. `filelock` is the same system call, without a way to name
the holder.

All that a run starts carries its owner's identity in the environment, so the next run, or the janitor, finds and ends
what has no owner any more.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from components.files import os_errors
from components.processes import Child
from components.processes.living import alive, born, lives


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


OWNER_VARIABLE = "EVENKEEL_OWNER"
GRACE = 10.0
"""Seconds between asking and killing. Prefect gives the flow that is cancelled 30 s in all."""


def run(command: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path, timeout: float | None = None) -> int:
    """Run ``command``, appending its output to ``log``; returns its exit code, 128 plus a signal's number where one
    ended it.

    Any exception while waiting (a signal, a cancelled flow) ends the command and all that it started: SIGTERM, then
    SIGKILL after `GRACE` seconds. Inference servers and ranks have sessions of their own, and get no SIGTERM: a
    training needs them for its last checkpoint, and they end with it.

    Raises:
        TimeoutExpired: ``timeout`` seconds were not enough.
    """
    with Child(Path(command[0]).name, command, log=log, base=env, cwd=cwd, grace=GRACE, group=True) as child:
        return child.wait(timeout)


def marked(variable: str) -> Iterator[psutil.Process]:
    """Every process that has the variable in its environment, as far as this user may see."""
    return (process for process in psutil.process_iter() if mark_of(process, variable))


def mark_of(process: psutil.Process, variable: str) -> str:
    """The variable in its environment; empty where there is none, or no such process any more."""
    try:
        return str(process.environ().get(variable, ""))
    except psutil.Error:
        return ""


def take_over(project: Path) -> list[int]:
    """End what killed runs of ``project`` left behind, and mark all that this process starts from now on as its own;
    returns the ids of the processes that were ended.
    """
    ended = end(leftovers(project))
    os.environ[OWNER_VARIABLE] = f"{os.getpid()}:{born():.0f}:{project}"
    return ended


def leftovers(project: Path) -> list[psutil.Process]:
    """The processes of ``project`` whose owner is gone."""
    return [process for process in marked(OWNER_VARIABLE) if _is_leftover(process, project)]


def end(processes: Iterable[psutil.Process]) -> list[int]:
    """Kill these processes and all below them, wait until they are gone, and return their ids."""
    killed = set(processes)
    for process in tuple(killed):
        with suppress(psutil.NoSuchProcess):
            killed.update(process.children(recursive=True))
    for process in killed:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(killed, timeout=GRACE)
    return sorted(process.pid for process in killed)


def _is_leftover(process: psutil.Process, project: Path) -> bool:
    pid, _, rest = mark_of(process, OWNER_VARIABLE).partition(":")
    started, _, root = rest.partition(":")
    if root != str(project) or not lives(process):
        return False
    try:
        return not alive(int(pid), float(started))
    except ValueError:
        return False  # not a mark of ours
