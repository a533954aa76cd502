"""Who started a run: a claim without proof, stored in the workspace, with the candidate and in its evidence.

At a terminal it is Git's configured identity and the login; in a deployed run it is the creator that Prefect recorded
for the flow run. Prefect has no users: for a run that was started in its UI there is no claim.
"""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from components.errors import InputError
from components.files import read_json, write_json
from flows.host.git import git
from flows.run.workspace import Workspace

FILE = "started_by.json"


def note_starter(workspace: Workspace, flow_run_id: str | None, deployed: bool) -> None:
    """Add the present user to those who worked on the run before. Call it with the workspace held."""
    names = _of_flow_run(flow_run_id) if deployed and flow_run_id else local_identity(workspace.project)
    before = starters(workspace)
    if names is None or before == []:
        write_json(_path(workspace), [])
    else:
        write_json(_path(workspace), sorted({*(before or ()), *names}))


def starters(workspace: Workspace) -> list[str] | None:
    """The names of all who started or continued the run; empty where one is not known, None before the first."""
    path = _path(workspace)
    return [str(name) for name in read_json(path)] if path.exists() else None


def _path(workspace: Workspace) -> Path:
    return workspace.layout.state / FILE


def local_identity(project: Path) -> list[str]:
    """Name and e-mail address that Git is configured with, and the login."""
    found = []
    for key in ("user.name", "user.email"):
        with suppress(InputError):  # not configured
            found.append(git(project, "config", "--get", key))
    with suppress(OSError, KeyError, ImportError):  # a user without a name, as in a container
        found.append(getpass.getuser())
    return list(dict.fromkeys(name.strip() for name in found if name.strip()))


def _of_flow_run(flow_run_id: str) -> Sequence[str] | None:
    """The creator that Prefect recorded for the flow run; None where it recorded none."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        made = client.read_flow_run(UUID(flow_run_id))
    by, deployment = made.created_by, ""
    if by is None or not by.display_value:
        return None
    if by.type == "SCHEDULE" and made.deployment_id:
        with get_client(sync_client=True) as client:
            deployment = client.read_deployment(made.deployment_id).name
    return [f"schedule:{deployment}"] if deployment else [str(by.display_value)]
