"""One process that serving consists of, started again when it dies."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from components.processes.child import Child
from flows.serving.service import ProcessIdentity, last_service

LONGEST_PAUSE = 30.0
"""Seconds between two starts, at most."""
HEALTHY = 120.0
"""Seconds after which a process counts as healthy: when it exits later, it is restarted without a pause."""
MAX_EXITS = 6
"""Deaths in a row, none of them `HEALTHY` seconds after the last, after which it is given up."""

LEFTOVERS = 20.0
"""Seconds to wait for the processes of a killed `serve` to end."""
WIDTH = 200
"""Characters of a log's line that are shown; a database can say thousands in one."""


@dataclass
class SupervisedProcess:
    """A command under a guardian process. ``grace``: seconds between asking it to end and killing it."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    log: Path
    cwd: Path
    grace: float
    child: Child | None = None
    exits: int = 0
    started: float = field(default=0.0, repr=False)

    def start(self) -> None:
        self.child = Child(self.name, self.command, log=self.log, env=self.env, cwd=self.cwd, grace=self.grace)
        self.started = time.monotonic()

    @property
    def alive(self) -> bool:
        return self.child is not None and self.child.alive

    @property
    def who(self) -> ProcessIdentity | None:
        return ProcessIdentity.of(self.child.pid) if self.child is not None and self.child.alive else None

    def ending(self) -> str:
        """How it ended, and what it said last."""
        said = self.child.ending() if self.child is not None else f"{self.name} was never started"
        return "\n".join(line[:WIDTH] for line in said.splitlines())

    def record_exit(self) -> float:
        """Count it; returns the seconds to wait before the next start."""
        self.exits = 0 if time.monotonic() - self.started > HEALTHY else self.exits + 1
        return min(LONGEST_PAUSE, 2.0 ** (self.exits - 1)) if self.exits > 1 else 0.0

    @property
    def gave_up(self) -> bool:
        return self.exits >= MAX_EXITS

    def stop(self) -> None:
        """End it and all that it started; returns when that is gone."""
        if self.child is not None:
            self.child.stop()


def wait_for(condition: Callable[[], bool], seconds: float, stop: Callable[[], bool], pause: float = 0.2) -> bool:
    """Whether ``condition`` came true in time; looks until then, until ``seconds`` are over, or until ``stop``."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up and not stop():
        if condition():
            return True
        time.sleep(pause)
    return False


def end_leftovers(project: Path) -> None:
    """End what a killed `serve` started. Its guardians do so by themselves; this waits for them, and then insists."""
    service = last_service(project)
    left = [who for who in service.parts.values() if who.alive] if service else []
    if wait_for(lambda: not any(who.alive for who in left), LEFTOVERS, lambda: False):
        return
    for who in left:
        if who.alive:
            guardian = psutil.Process(who.pid)
            for process in [*guardian.children(recursive=True), guardian]:
                process.kill()
