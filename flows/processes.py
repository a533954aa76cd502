"""Child processes that never outlive their run: each gets a session of its own, and the whole session is ended.

A run that is killed outright cannot clean up. Its children carry their owner's identity in the environment, so the next
run finds and ends those whose owner is gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from components.files import os_errors

OWNER_VARIABLE = "EVENKEEL_OWNER"
GRACE = 10.0
"""Seconds between asking and killing."""


def run(command: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path, timeout: float | None = None) -> int:
    """Run ``command``, appending its output to ``log``; returns its exit code.

    Any exception while waiting (a signal, a cancelled flow) ends the command and all that it started.

    Raises:
        TimeoutExpired: ``timeout`` seconds were not enough.
    """
    with os_errors("write", log):
        log.parent.mkdir(parents=True, exist_ok=True)
        output = log.open("ab")
    with output:
        process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            return process.wait(timeout)
        except BaseException:
            stop(process)
            raise


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the session that ``process`` leads: politely, then for good."""
    os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def take_over(project: Path) -> list[int]:
    """End what killed runs of ``project`` left behind, and mark all that this process starts from now on as its own.

    Returns:
        The ids of the processes that were ended.
    """
    leftovers = [process for process in psutil.process_iter() if _is_leftover(process, project)]
    for process in leftovers:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(leftovers, timeout=GRACE)
    os.environ[OWNER_VARIABLE] = f"{os.getpid()}:{psutil.Process().create_time():.0f}:{project}"
    return sorted(process.pid for process in leftovers)


def _is_leftover(process: psutil.Process, project: Path) -> bool:
    try:
        mark = process.environ().get(OWNER_VARIABLE, "")
    except psutil.Error:
        return False
    pid, _, rest = mark.partition(":")
    started, _, root = rest.partition(":")
    return root == str(project) and not _alive(int(pid), float(started))


def _alive(pid: int, started: float) -> bool:
    try:
        return bool(abs(psutil.Process(pid).create_time() - started) < 2)
    except psutil.NoSuchProcess:
        return False
