"""Reads `prefect.yaml`: which flows are deployed, with what schedules, limits and triggers.

The file is Prefect's own, so that ``prefect deploy --all`` does the same for a work pool elsewhere. Deployments keep
what people changed in the UI: a schedule that was paused stays paused, and schedules added there are left alone.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from components.errors import InputError
from components.files import read_text

if TYPE_CHECKING:
    from prefect import Flow

FILE = "prefect.yaml"
UNREADABLE = "see https://docs.prefect.io/v3/how-to-guides/deployments/prefect-yaml"


class ScheduleEntry(BaseModel):
    """One schedule; ``slug`` is how it is recognised when it is deployed again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slug: str
    cron: str
    timezone: str
    active: bool = True
    """At first; after that people decide, in the UI."""
    parameters: dict[str, Any] = {}


class Limit(BaseModel):
    """How many runs of a deployment there may be at once, and what becomes of one more."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    limit: int
    collision_strategy: str = "ENQUEUE"
    grace_period_seconds: int | None = None


class WorkPool(BaseModel):
    """Where the runs go, and variables of their jobs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    job_variables: dict[str, Any] = {}


class Entry(BaseModel):
    """One deployment of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    entrypoint: str
    work_pool: WorkPool
    description: str | None = None
    tags: list[str] = []
    parameters: dict[str, Any] = {}
    schedules: list[ScheduleEntry] = []
    concurrency_limit: Limit | None = None
    triggers: list[dict[str, Any]] = []

    def load(self) -> Flow[..., Any]:
        """The flow.

        Raises:
            InputError: the entrypoint does not lead to a flow.
        """
        from prefect import Flow

        module, _, function = self.entrypoint.rpartition(".")
        try:
            found = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError, ValueError) as error:
            where = f"{FILE}: deployments.{self.name}.entrypoint"
            raise InputError(
                f"{self.entrypoint}: {error}", where=where, how="name a flow as module.function"
            ) from error
        if not isinstance(found, Flow):
            raise InputError(f"{self.entrypoint} is not a flow", where=FILE, how="decorate the function with @flow")
        return found


def read_entries(project: Path) -> list[Entry]:
    """The deployments of the project.

    Raises:
        InputError: the file is missing or not what it should be.
    """
    path = project / FILE
    text = read_text(path, how=f"`git checkout {FILE}`")
    try:
        entries = yaml.safe_load(text)["deployments"]
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise InputError(f"not a file of deployments: {error}", where=path, how=UNREADABLE) from error
    try:
        return [Entry.model_validate(entry) for entry in entries]
    except (ValidationError, TypeError) as error:
        raise InputError(f"a deployment that cannot be read: {error}", where=path, how=UNREADABLE) from error
