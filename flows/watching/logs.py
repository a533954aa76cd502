"""`evenkeel logs`: what a run's stages print, as it is or as it grows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from components.errors import InputError
from flows.display.console import Tail
from flows.watching.execution import read
from flows.watching.runs import RunView

POLL = 0.3
"""Seconds between two looks."""
BLOCK = 1 << 16


class Follower:
    """The bytes of one log, from ``offset`` on; a truncated or replaced log is read again from its beginning."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path, self._offset = path, offset
        self._inode: int | None = None

    def copy(self, write: Callable[[bytes], object]) -> None:
        """Write what was added since the last look."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return  # not there yet, or between two names
        with file:
            found = os.fstat(file.fileno())
            if found.st_size < self._offset or (self._inode is not None and found.st_ino != self._inode):
                self._offset = 0
            self._inode = found.st_ino
            file.seek(self._offset)
            while block := file.read(BLOCK):
                write(block)
                self._offset += len(block)


def names(run: RunView) -> list[str]:
    """The logs that the run has: of stages, and of processes that these started."""
    return sorted(path.stem for path in run.layout.logs.glob("*.log"))


def choose(run: RunView, stage: str | None) -> str:
    """The named log, or that of the stage that runs or ran last. Where there is none it is an `InputError`."""
    there = names(run)
    if stage is None:
        present = run.stage.name if run.stage else None
        if present in there or (present and run.running):
            return present
        if there:
            return max(there, key=lambda name: run.log(name).stat().st_mtime)
        how = "`-f` waits for it" if run.running else f"it does not run: evenkeel run --resume {run.run_id}"
        raise InputError("this run has printed nothing yet", where=run.layout.logs, how=how)
    if stage not in there:
        listed = ", ".join(there) or "none yet"
        raise InputError(f"no log {stage!r}", where=run.layout.logs, how=f"there are: {listed}")
    return stage


def show(run: RunView, stage: str | None, lines: int | None, write: Callable[[bytes], object]) -> None:
    """Write a log as it is, or its last ``lines``."""
    path = run.log(choose(run, stage))
    Follower(path, tail(path, lines)).copy(write)


def tail(path: Path, lines: int | None) -> int:
    """Where the last ``lines`` of a file begin; 0 for None."""
    if lines is None or not path.exists():
        return 0
    text = path.read_bytes()
    if lines == 0:
        return len(text)
    end = len(text) - 1  # the last line's own end is none before it
    for _ in range(lines):
        if (end := text.rfind(b"\n", 0, max(0, end))) < 0:
            return 0
    return end + 1


def follow(
    run: RunView,
    stage: str | None,
    lines: int | None,
    write: Callable[[bytes], object],
    switched: Callable[[str], object],
) -> None:
    """Write a log as it grows until the run ends; without a ``stage`` continue with every next stage. A log that a
    running run has yet to begin is waited for. ``switched`` is called with the name of a log before its first bytes.
    """
    sizes = {path.stem: path.stat().st_size for path in run.layout.logs.glob("*.log")}  # of earlier executions
    progress = Tail(run.progress)
    progress.read()
    present = _first(run, stage)
    log = None
    if present is not None:
        switched(present)
        log = Follower(run.log(present), tail(run.log(present), lines))
    while True:
        over = not running(run.root)
        begun = [event["stage"] for event in progress.read() if event.get("state") == "running"]
        if log is not None:
            log.copy(write)  # all that was printed before the next stage began
        for name in begun if stage is None else ():
            if name != present:
                present = name
                switched(name)
                log = Follower(run.log(name), sizes.get(name, 0))
                log.copy(write)
        if over:
            return
        time.sleep(POLL)


def _first(run: RunView, stage: str | None) -> str | None:
    """The log to begin with, which a running run may have yet to begin; None where its first stage has not begun."""
    if running(run.root):
        if stage in [view.name for view in run.stages]:
            return stage
        if stage is None and run.stage is None and not names(run):
            return None
    return choose(run, stage)


def running(root: Path) -> bool:
    """Whether the run in this workspace is running."""
    execution = read(root)
    return execution is not None and execution.alive
