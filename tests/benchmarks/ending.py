"""A process that ends with all that it started: by itself, when its time is over, or when it is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

GRACE = 60.0
"""Seconds in which a cell may end what it started, such as a Prefect server, before it is killed."""


def run_to_end(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path, limit: float, grace: float = GRACE
) -> int | str:
    """Its exit code, or that it has not ended within ``limit`` seconds; what it prints goes to ``log``.

    It has a session of its own, so that all of it can be ended at once: then, and at Ctrl-C, nothing of it is left.
    """
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return f"no end within {limit:.0f} s"
    finally:
        if process.poll() is None:
            _end(process, grace)


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """Ask the whole group; kill what is left of it, and what it started in sessions of their own."""
    family = _below(process.pid)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        give_up = time.monotonic() + grace
        while time.monotonic() < give_up and not _ended(process.pid):
            time.sleep(0.1)
        family |= _below(process.pid)
    finally:  # at a second Ctrl-C, too
        with suppress(ProcessLookupError, PermissionError):  # not waited for yet: the number is not reused
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for one in family:
            with suppress(psutil.NoSuchProcess):  # psutil knows a number that somebody else has got by now
                one.kill()
        psutil.wait_procs(family, timeout=grace)


def _below(pid: int) -> set[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return set(psutil.Process(pid).children(recursive=True))
    return set()


def _ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def interrupted_by_signals() -> None:
    """Take SIGTERM, and a terminal that is closed, as Ctrl-C: what was started is ended on the way out."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
