"""Reads `prefect.yaml`: which flows are deployed, with what schedules, limits and triggers.

The file is Prefect's own, so that ``prefect deploy --all`` does the same for a work pool elsewhere. Deployments keep
what people changed in the UI: a schedule that was paused stays paused, and schedules added there are left alone. What
leaves the file leaves the server: schedules by their slug, deployments by the tag ``evenkeel``.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any, Literal

from prefect import Flow
from prefect.client.schemas.schedules import CronSchedule
from prefect.events import DeploymentEventTrigger
from pydantic import AfterValidator, Field, ValidationError

from components.config.base import Section
from components.config.documents import foreign
from components.errors import InputError
from components.files import read_text

FILE = "prefect.yaml"
UNREADABLE = "see https://docs.prefect.io/v3/how-to-guides/deployments/prefect-yaml"


def _checked(key: Literal["cron", "timezone"], value: str) -> str:
    """As Prefect checks it, which would be too late: deployments before this one have been changed by then."""
    try:
        CronSchedule.model_validate({"cron": "0 0 * * *", key: value})
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error
    return value


Cron = Annotated[str, AfterValidator(lambda value: _checked("cron", value))]
Zone = Annotated[str, Field(min_length=1), AfterValidator(lambda value: _checked("timezone", value))]


class ScheduleEntry(Section):
    """One schedule; ``slug`` is how it is recognised when it is deployed again."""

    slug: str
    cron: Cron
    timezone: Zone
    active: bool = True
    """At first; after that people decide, in the UI."""
    parameters: dict[str, Any] = Field(default_factory=dict)


class Limit(Section):
    """How many runs of a deployment there may be at once, and what happens to one more."""

    limit: int = Field(ge=1)
    collision_strategy: Literal["ENQUEUE", "CANCEL_NEW"] = "ENQUEUE"
    grace_period_seconds: int | None = Field(None, ge=60, le=86400)


class WorkPool(Section):
    """Where the runs go, and variables of their jobs."""

    name: str
    job_variables: dict[str, Any] = Field(default_factory=dict)


class Entry(Section):
    """One deployment of the file."""

    name: str
    entrypoint: str
    work_pool: WorkPool
    description: str | None = None
    tags: list[str] = Field(default_factory=list)
    parameters: dict[str, Any] = Field(default_factory=dict)
    schedules: list[ScheduleEntry] = Field(default_factory=list)
    concurrency_limit: Limit | None = None
    triggers: list[DeploymentEventTrigger] = Field(default_factory=list)

    def load(self) -> Flow[..., Any]:
        """The flow; an entrypoint that leads to none is an `InputError`."""
        module, _, function = self.entrypoint.rpartition(".")
        try:
            found = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError, ValueError) as error:
            where, how = f"{FILE}: deployments.{self.name}.entrypoint", "name a flow as module.function"
            raise InputError(f"{self.entrypoint}: {error}", where=where, how=how) from error
        if not isinstance(found, Flow):
            raise InputError(f"{self.entrypoint} is not a flow", where=FILE, how="decorate the function with @flow")
        return found


def read_entries(project: Path) -> list[Entry]:
    """The deployments of the project; a file that is missing or not what it should be is an `InputError`."""
    path = project / FILE
    text = read_text(path, how=f"`git checkout {FILE}`")
    try:
        entries = foreign(text, path)["deployments"]
    except (KeyError, TypeError) as error:
        raise InputError(f"not a file of deployments: {error}", where=path, how=UNREADABLE) from error
    if not isinstance(entries, list):
        raise InputError("deployments: not a list", where=path, how=UNREADABLE)
    return [_read(path, number, entry) for number, entry in enumerate(entries)]


def _read(path: Path, number: int, entry: Any) -> Entry:
    try:
        return Entry.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        name = entry.get("name", number) if isinstance(entry, dict) else number
        key = ".".join(str(part) for part in ("deployments", name, *first["loc"]))
        raise InputError(f"{key}: {first['msg']}", where=path, how=UNREADABLE) from error
