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
"""Seconds by which two readings of when one process began may differ."""
STARTS = 2**32
"""What distinguishes one start of the machine from another in `born`: more seconds than it stays up."""
BOOT = Path("/proc/sys/kernel/random/boot_id")


def lives(process: psutil.Process | int) -> bool:
    """Whether a process, or the one with this number, can still do something. A zombie cannot.

    A number is no identity: it may be another process's by now. Who knows when theirs began calls `alive`.
    """
    try:
        known = psutil.Process(process) if isinstance(process, int) else process
        return bool(known.is_running() and known.status() not in DEAD)
    except (psutil.Error, ValueError):  # gone, another's, or a number that no process can have
        return False


def born(pid: int | None = None) -> float:
    """When this process, or the one with this number, began, whatever happens to the system's clock since: by a number
    of the machine's start and the seconds after it. Without Linux the creation time by the system's clock.

    Raises:
        NoSuchProcess: there is none.
    """
    process = psutil.Process(pid)
    try:
        start = 1 + int(BOOT.read_text(encoding="ascii")[:4], 16)
        stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return float(process.create_time())
    return start * STARTS + int(stat.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")


def alive(pid: int, created: float) -> bool:
    """Whether the process that `born` then, not another that was given its id, is alive. A zombie is not.

    Earlier versions took down the creation time by the system's clock, and are known by that as long as it is not set.
    """
    try:
        times = born(pid), psutil.Process(pid).create_time()
        return any(abs(time - created) < CLOCK for time in times) and lives(pid)
    except psutil.NoSuchProcess:
        return False


def claim(folder: Path) -> None:
    """Make the folder, and say in it that it is this process's.

    Raises:
        InputError: it cannot be written to.
    """
    own = {"pid": os.getpid(), "created": born(), "host": platform.node()}
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
