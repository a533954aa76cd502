"""``python -m flows.serving.register``: work pool, deployments and automations of this project, on the server that
``PREFECT_API_URL`` names. Doing it again changes nothing but what changed. Prints one line a deployment.

`prefect.yaml` says which flows are deployed, with what schedules, limits and triggers. The file is Prefect's own, so
that ``prefect deploy --all`` does the same for a work pool elsewhere. Deployments keep what people changed in the UI: a
schedule that was paused stays paused, and schedules added there are left alone. What leaves the file leaves the server:
schedules by their slug, deployments by the tag ``evenkeel``.
"""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate, WorkPoolUpdate
from prefect.client.schemas.filters import DeploymentFilter, WorkPoolFilter
from prefect.client.schemas.objects import ConcurrencyLimitConfig, WorkerStatus
from prefect.client.schemas.schedules import CronSchedule
from prefect.deployments.runner import RunnerDeployment
from prefect.events import DeploymentEventTrigger
from prefect.exceptions import ObjectNotFound
from prefect.types.entrypoint import EntrypointType
from prefect.workers.process import ProcessWorker
from pydantic import AfterValidator, Field, ValidationError

from components.config.base import Section
from components.config.documents import foreign
from components.errors import EvenkeelError, InputError
from components.files import read_text
from flows.host.git import project_root
from flows.serving.automations import set_automations
from flows.serving.flow_run import COMMAND
from flows.serving.options import NOTIFY_VARIABLE, POOL

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
    found = []
    for number, entry in enumerate(entries):
        try:
            found.append(Entry.model_validate(entry))
        except ValidationError as error:
            first = error.errors()[0]
            name = entry.get("name", number) if isinstance(entry, dict) else number
            key = ".".join(str(part) for part in ("deployments", name, *first["loc"]))
            raise InputError(f"{key}: {first['msg']}", where=path, how=UNREADABLE) from error
    return found


TAG = "evenkeel"
"""The tag of deployments from the file; others in the pool are left alone."""


def register(project: Path) -> None:
    """Bring the server up to date with the project.

    Raises:
        InputError: `prefect.yaml` or a flow that it names is not as it must be.
    """
    entries = [(entry, entry.load()) for entry in read_entries(project)]  # before anything is changed
    with get_client(sync_client=True) as client:
        make_pool(client, project)
        bring_up_to_date(client, entries, POOL)


def bring_up_to_date(client: SyncPrefectClient, entries: Sequence[tuple[Entry, Flow[..., Any]]], pool: str) -> None:
    """Deploy these to the work pool, remove what an earlier file had deployed there, and set the automations."""
    for entry, flow in entries:
        print("deployed ", deploy(client, entry, flow), flush=True)
    for name in remove_others(client, {full_name(entry, flow) for entry, flow in entries}, pool):
        print("removed  ", name, flush=True)
    set_automations(client, os.environ.get(NOTIFY_VARIABLE, ""))


def make_pool(client: SyncPrefectClient, project: Path) -> None:
    """The pool whose runs are processes in the project's folder, with this Python. One that another project has is an
    `InputError`: its runs would be given this one's code and data."""
    template = ProcessWorker.get_default_base_job_template()
    variables = template["variables"]["properties"]
    # With a command of its own the worker starts one interpreter for a run, and not three.
    variables["command"]["default"] = shlex.join(COMMAND)
    variables["working_dir"]["default"] = str(project)
    try:
        there = client.read_work_pool(POOL).base_job_template
    except ObjectNotFound:
        description = f"Processes on the machine that serves {project.name}."
        wanted = WorkPoolCreate(name=POOL, type="process", base_job_template=template, description=description)
        client.create_work_pool(wanted)
    else:
        _refuse_other(client, there, project)
        client.update_work_pool(POOL, WorkPoolUpdate(base_job_template=template))


def _refuse_other(client: SyncPrefectClient, template: dict[str, Any], project: Path) -> None:
    """Refuse the database of another project. A project that was moved with its database may continue."""
    folder = template.get("variables", {}).get("properties", {}).get("working_dir", {}).get("default")
    if folder in (None, str(project)):
        return
    served = any(worker.status == WorkerStatus.ONLINE for worker in client.read_workers_for_work_pool(POOL))
    if served or Path(folder).is_dir():
        how = "give this one a database of its own: another --database, no PREFECT_HOME, in a copy no .state/prefect"
        raise InputError(f"this database belongs to another project: {folder}", where=f"work pool {POOL}", how=how)


def full_name(entry: Entry, flow: Flow[..., Any]) -> str:
    return f"{flow.name}/{entry.name}"


def deploy(client: SyncPrefectClient, entry: Entry, flow: Flow[..., Any]) -> str:
    """Create the deployment or bring it up to date; returns its full name."""
    name, limit = full_name(entry, flow), entry.concurrency_limit
    try:
        paused = client.read_deployment_by_name(name).paused
    except ObjectNotFound:
        paused = False
    deployment = RunnerDeployment.from_flow(
        flow,
        name=entry.name,
        description=entry.description or flow.description,
        tags=entry.tags,
        parameters=entry.parameters,
        paused=paused,
        concurrency_limit=ConcurrencyLimitConfig(**limit.model_dump()) if limit else None,
        triggers=list(entry.triggers),
        work_pool_name=entry.work_pool.name,
        job_variables=entry.work_pool.job_variables,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    # Fields that were never set are not sent; an empty list would take away the schedules that were added in the UI.
    deployment.model_fields_set.discard("schedules")
    deployment.apply()
    schedule(client, name, entry.schedules)
    return name


def schedule(client: SyncPrefectClient, name: str, wanted: list[ScheduleEntry]) -> None:
    """Add, change and remove schedules of the file, without a word about whether they are paused.

    Those that people add in the UI have no slug; they are left alone.
    """
    deployment = client.read_deployment_by_name(name)
    there = {found.slug: found for found in deployment.schedules}
    for entry in wanted:
        cron = CronSchedule(cron=entry.cron, timezone=entry.timezone)
        if (found := there.get(entry.slug)) is None:
            said = entry.model_dump(include={"slug", "parameters", "active"})
            client.create_deployment_schedules(deployment.id, [DeploymentScheduleCreate(schedule=cron, **said)])
        elif found.schedule != cron or found.parameters != entry.parameters:
            client.update_deployment_schedule(deployment.id, found.id, schedule=cron, parameters=entry.parameters)
    for slug in set(there) - {None, *(entry.slug for entry in wanted)}:
        client.delete_deployment_schedule(deployment.id, there[slug].id)


def remove_others(client: SyncPrefectClient, kept: set[str], pool: str) -> Iterator[str]:
    """Remove deployments that an earlier file made in this work pool, with their schedules and triggers, but for those
    whose full names are in ``kept``; yields their names."""
    ours = DeploymentFilter.model_validate({"tags": {"all_": [TAG]}})
    there = WorkPoolFilter.model_validate({"name": {"any_": [pool]}})
    for found in client.read_deployments(deployment_filter=ours, work_pool_filter=there):
        name = f"{client.read_flow(found.flow_id).name}/{found.name}"
        if name not in kept:
            client.delete_resource_owned_automations(f"prefect.deployment.{found.id}")
            client.delete_deployment(found.id)
            yield name


if __name__ == "__main__":
    try:
        register(project_root(Path.cwd()))
    except EvenkeelError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
