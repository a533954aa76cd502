"""Whether a process lives: one that has ended and waits for its parent to take its exit code (a zombie) does not."""

from __future__ import annotations

import psutil

DEAD = frozenset({psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD})
"""States (Z and X in ``/proc/PID/stat``) in which nothing runs any more, though the number is still taken."""


def lives(process: psutil.Process | int) -> bool:
    """Whether a process, or the one with this number, can still do something.

    A number is no identity: it may be another process's by now. Who knows when theirs began calls `owner.alive`.
    """
    try:
        known = psutil.Process(process) if isinstance(process, int) else process
        return bool(known.is_running() and known.status() not in DEAD)
    except (psutil.Error, ValueError):  # gone, another's, or a number that no process can have
        return False
