"""Where this project is served, and by whom: `.state/serve.json`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError

from components.config.base import Section
from components.errors import InputError
from components.files import read_json, write_json
from components.processes.living import alive, born
from flows.host.locks import lock_file


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
