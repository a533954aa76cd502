"""Child processes that never outlive their run: each gets a session of its own, and all that comes of it is ended.

A run that is killed outright cannot clean up. Its children carry their owner's identity in the environment, so the next
run, or the janitor, finds and ends those whose owner is gone.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from components.files import os_errors
from components.processes.living import lives
from components.processes.owner import alive

OWNER_VARIABLE = "EVENKEEL_OWNER"
COMMAND_VARIABLE = "EVENKEEL_COMMAND"
"""A mark that all descendants of one command share, whatever sessions and parents they have by then."""
GRACE = 10.0
"""Seconds between asking and killing. Prefect gives the flow that is cancelled 30 s in all."""
POLL = 0.05


def run(command: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path, timeout: float | None = None) -> int:
    """Run ``command``, appending its output to ``log``; returns its exit code.

    Any exception while waiting (a signal, a cancelled flow) ends the command and all that it started.

    Raises:
        TimeoutExpired: ``timeout`` seconds were not enough.
    """
    with os_errors("write", log):
        log.parent.mkdir(parents=True, exist_ok=True)
        output = log.open("ab")
    mark = secrets.token_hex(8)
    with output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**env, COMMAND_VARIABLE: mark},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            return process.wait(timeout)
        except BaseException:
            stop(process, mark)
            raise


def stop(process: subprocess.Popen[bytes], mark: str) -> None:
    """End ``process`` and all its descendants: SIGTERM, then SIGKILL after `GRACE` seconds; returns when they are gone.

    Inference servers and ranks have sessions of their own, and a guardian each; verifiers have no mark. They get no
    SIGTERM: a training needs them for its last checkpoint, and they end with it. A second signal during the grace
    period skips the rest of it.
    """
    tree = _ProcessTree(process, mark)
    try:
        deadline = time.monotonic() + GRACE
        tree.terminate()
        while time.monotonic() < deadline and tree.lives():
            time.sleep(POLL)
    finally:
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline and tree.lives():  # one that waits for a dead disk cannot even be killed
            tree.kill()
            time.sleep(POLL)


class _ProcessTree:
    """A command that this process started, and its descendants, as found now and later."""

    def __init__(self, process: subprocess.Popen[bytes], mark: str) -> None:
        self._process, self._mark = process, mark
        self._known: set[psutil.Process] = set()
        with contextlib.suppress(psutil.NoSuchProcess):
            self._known.update(psutil.Process(process.pid).children(recursive=True))

    def lives(self) -> bool:
        """Whether any process of it lives. The whole machine is searched only when all known processes have ended."""
        if self._process.poll() is None or any(map(lives, self._known)):
            return True
        self._known = {one for one in marked(COMMAND_VARIABLE) if mark_of(one, COMMAND_VARIABLE) == self._mark}
        return any(map(lives, self._known))

    def terminate(self) -> None:
        """Send SIGTERM to the command's own session."""
        self._signal_session(signal.SIGTERM)

    def kill(self) -> None:
        """End all of it."""
        self._signal_session(signal.SIGKILL)
        for one in self._known:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()

    def _signal_session(self, number: signal.Signals) -> None:
        if self._process.poll() is None:  # not reaped yet, so no other process has its id
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


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
    """End what killed runs of ``project`` left behind, and mark all that this process starts from now on as its own.

    Returns:
        The ids of the processes that were ended.
    """
    ended = end(leftovers(project))
    os.environ[OWNER_VARIABLE] = f"{os.getpid()}:{psutil.Process().create_time():.0f}:{project}"
    return ended


def leftovers(project: Path) -> list[psutil.Process]:
    """The processes of ``project`` whose owner is gone."""
    return [process for process in marked(OWNER_VARIABLE) if _is_leftover(process, project)]


def end(processes: Iterable[psutil.Process]) -> list[int]:
    """Kill these processes and all below them, wait until they are gone, and return their ids."""
    killed = set(processes)
    for process in tuple(killed):
        with contextlib.suppress(psutil.NoSuchProcess):
            killed.update(process.children(recursive=True))
    for process in killed:
        with contextlib.suppress(psutil.NoSuchProcess):
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
