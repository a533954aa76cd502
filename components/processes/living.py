"""Whether a process lives, and which process a folder on shared ground belongs to.

Weights that inference servers read may lie outside of the run's own folder, in memory for instance; no one would find
them there when the run is killed. So the folder says whose it is, and is removed once that process is gone.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil

from components.errors import InputError
from components.files import os_errors, read_json, write_json

DEAD = frozenset({psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD})
"""States (Z and X in ``/proc/PID/stat``) in which nothing runs any more, though the number is still taken."""
NAME = "owner.json"
CLOCK = 2.0
"""Seconds by which two readings of one process's creation time may differ: it is reckoned from the system's clock."""


def lives(process: psutil.Process | int) -> bool:
    """Whether a process, or the one with this number, can still do something. A zombie cannot.

    A number is no identity: it may be another process's by now. Who knows when theirs began calls `alive`.
    """
    try:
        known = psutil.Process(process) if isinstance(process, int) else process
        return bool(known.is_running() and known.status() not in DEAD)
    except (psutil.Error, ValueError):  # gone, another's, or a number that no process can have
        return False


def alive(pid: int, created: float) -> bool:
    """Whether this very process, not another that was given its id, is alive. A zombie is not."""
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - created) < CLOCK and lives(process)
    except psutil.NoSuchProcess:
        return False


def claim(folder: Path) -> None:
    """Make the folder, and say in it that it is this process's.

    Raises:
        InputError: it cannot be written to.
    """
    own = {"pid": os.getpid(), "created": psutil.Process().create_time(), "host": platform.node()}
    write_json(folder / NAME, own)


def release(folder: Path) -> None:
    """Take back what `claim` said."""
    with os_errors("remove", folder / NAME):
        (folder / NAME).unlink(missing_ok=True)


def abandoned(folder: Path) -> bool:
    """Whether the folder says whose it is, and that process was of this machine and is gone."""
    try:
        owner = read_json(folder / NAME)
        return owner["host"] == platform.node() and not alive(int(owner["pid"]), float(owner["created"]))
    except (InputError, KeyError, TypeError, ValueError):
        return False
