"""Where this project is served, and by whom: `.state/serve.json`; and one process that serving consists of, started
again when it dies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Self

import psutil
from pydantic import Field, ValidationError

from components.config.base import Section
from components.errors import InputError
from components.files import read_json, write_json
from components.processes import Child
from components.processes.living import alive, born
from flows.host.processes import end, lock_file


class ProcessIdentity(Section):
    """A process that cannot be mistaken for a later one with the same number."""

    pid: int
    created: float

    @classmethod
    def of(cls, pid: int) -> Self:
        return cls(pid=pid, created=born(pid))

    @property
    def alive(self) -> bool:
        return alive(self.pid, self.created)


class Service(Section):
    """What is served. Secrets are not part of it."""

    server: ProcessIdentity
    """The `evenkeel serve` itself."""
    parts: dict[str, ProcessIdentity] = Field(default_factory=dict)
    """What it started, by name."""
    api_url: str
    ui_url: str
    pages_url: str


def service_file(project: Path) -> Path:
    return project / ".state" / "serve.json"


def write_service(project: Path, service: Service) -> None:
    write_json(service_file(project), service.model_dump())


def last_service(project: Path) -> Service | None:
    """The content of the file, whether its processes still run or not; None if there is none that can be read."""
    if not service_file(project).exists():
        return None
    try:
        return Service.model_validate(read_json(service_file(project)))
    except (InputError, ValidationError):
        return None


def served(project: Path) -> Service | None:
    """Where the project is served now. The file of a dead `serve` is ignored."""
    service = last_service(project)
    return service if service is not None and service.server.alive else None


@contextmanager
def exclusive(project: Path) -> Iterator[None]:
    """Be the only `serve` of this project: another one that runs is an `InputError`. The lock ends with the process."""
    with lock_file(project / ".state" / "locks" / "serve") as lock:
        if not lock.take():
            service = served(project)
            holder = f"process {service.server.pid} at {service.ui_url}" if service else "a process that is starting"
            how = "use that one, or stop it first (Ctrl-C, or SIGTERM to that process)"
            raise InputError(f"this project is served already, by {holder}", where=project, how=how)
        yield


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


class SupervisedProcess:
    """A command under a guardian, started at once, and again when it has died. Its end is requested ``grace`` seconds
    before it is killed."""

    def __init__(
        self, name: str, command: Sequence[str], env: Mapping[str, str], log: Path, cwd: Path, grace: float
    ) -> None:
        self.log, self.exits = log, 0
        self._make = partial(Child, name, command, log=log, env=env, cwd=cwd, grace=grace)
        self.start()

    def start(self) -> None:
        self.child, self.started = self._make(), time.monotonic()

    @property
    def alive(self) -> bool:
        return self.child.alive

    @property
    def who(self) -> ProcessIdentity | None:
        """Its guardian, while that lives."""
        return ProcessIdentity.of(self.child.pid) if self.alive else None

    def ending(self) -> str:
        """How it ended, and what it said last."""
        return "\n".join(line[:WIDTH] for line in self.child.ending().splitlines())

    def record_exit(self) -> float:
        """Count it; returns the seconds to wait before the next start."""
        self.exits = 0 if time.monotonic() - self.started > HEALTHY else self.exits + 1
        return min(LONGEST_PAUSE, 2.0 ** (self.exits - 1)) if self.exits > 1 else 0.0

    @property
    def gave_up(self) -> bool:
        return self.exits >= MAX_EXITS


def wait_for(
    condition: Callable[[], bool], seconds: float, stop: Callable[[], bool] = lambda: False, pause: float = 0.2
) -> bool:
    """Whether ``condition`` came true in time; looks at least once, until ``seconds`` are over or until ``stop``."""
    give_up = time.monotonic() + seconds
    while not stop():
        if condition():
            return True
        if time.monotonic() >= give_up:
            break
        time.sleep(pause)
    return False


def end_leftovers(project: Path) -> None:
    """End what a killed `serve` started. Its guardians do so by themselves; this waits for them, and then insists."""
    service = last_service(project)
    left = [who for who in service.parts.values() if who.alive] if service else []
    if wait_for(lambda: not any(who.alive for who in left), LEFTOVERS):
        return
    end(psutil.Process(who.pid) for who in left if who.alive)
