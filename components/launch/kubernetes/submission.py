"""Who submits a job from here, whom its pods are, and where its files go."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING

from components.code_digest import code_digest
from components.config import Settings
from components.config.kubernetes import KubernetesSettings, S3State, VolumeState
from components.errors import InputError
from components.installed import pins_digest
from components.launch.base import Job
from components.launch.kubernetes.api import Cluster, Exists
from components.launch.kubernetes.manifests import jobset
from components.launch.kubernetes.plan import USER, RunPlan, Submission, address, plan_run
from components.pods.code import code_folder

if TYPE_CHECKING:
    from components.pods.depot import Depot

OWNER_VARIABLE = "EVENKEEL_RUN_OWNER"
POD_USER = "launch.kubernetes.user"


def submission(job: Job) -> Submission:
    """Who submits a job from here, and what code and packages it must find."""
    how, root = job.settings.launch.kubernetes, job.workspace.absolute()
    return Submission(
        stage=job.stage,
        workspace=root,
        run=root.name,
        owner=(how and how.owner) or submitter(),
        code=code_digest(),
        constraints=pins_digest(root),
        now=datetime.now(UTC),
        user=user_of(how, root) if how else USER,
        source=code_folder(root),
    )


def depot(plan: RunPlan) -> Depot | None:
    """Where the run's files lie, if in a bucket."""
    return depot_of(plan.submission.run, plan.submission.stage, plan.how)


def depot_of(run: str, stage: str, how: KubernetesSettings) -> Depot | None:
    """Where the files of a run's stage lie, if in a bucket; the server may have another address here than in the
    cluster."""
    shared = how.shared
    if not isinstance(shared, S3State):
        return None
    from components.pods.depot import Depot  # loads boto3, which takes a second

    here = Depot.of(address(run, stage, how, shared))
    return replace(here, endpoint_url=here.endpoint_url or shared.endpoint_url, region=here.region or shared.region)


def submitter() -> str:
    """Who submits a run from here.

    Raises:
        InputError: it is unknown, as in a container whose user has no name.
    """
    if named := os.environ.get(OWNER_VARIABLE):
        return named
    try:
        return getuser()
    except (OSError, KeyError, ImportError):
        how = f"set launch.kubernetes.owner, or {OWNER_VARIABLE} in the environment"
        raise InputError(
            "the owner of the run is unknown: this user has no name", where=OWNER_VARIABLE, how=how
        ) from None


def user_of(how: KubernetesSettings, workspace: Path) -> int:
    """The number of the user that pods run as. Where they share the workspace it is its owner's, or whoever makes it.

    Raises:
        InputError: they could not write there.
    """
    if not isinstance(how.shared, VolumeState):
        return how.user or USER
    made = workspace.exists()
    owner = workspace.stat().st_uid if made else os.getuid()
    if how.user is None and owner == 0:
        raise InputError(
            "the run's folder belongs to root, and pods never run as root: they could not write there",
            where=workspace,
            how=f"submit the run as another user, in a folder of theirs; or set {POD_USER}, and let that user write",
        )
    if made and how.user not in (None, owner) and not _open(workspace):
        raise InputError(
            f"pods run as user {how.user} ({POD_USER}), and the run's folder belongs to user {owner}: they could not "
            "write there",
            where=workspace,
            how=f"leave {POD_USER} out, or submit the run as user {how.user}",
        )
    return owner if how.user is None else how.user


def _open(workspace: Path) -> bool:
    """Whether it is writable for the group of all pods, or for everybody."""
    found = workspace.stat()
    return bool(found.st_mode & 0o002) or (found.st_gid == USER and bool(found.st_mode & 0o020))


def rehearse(
    settings: Settings,
    workspace: Path,
    stages: Iterable[str],
    connect: Callable[[str, str | None], Cluster] = Cluster.connect,
) -> None:
    """Go through the motions of submitting these stages; nothing is made. What the cluster would refuse when a stage
    comes to it, it refuses before the first stage begins.

    Args:
        workspace: where they will run; it need not be there yet.

    Raises:
        InputError: there is no cluster, or it would refuse one of them, or its pods could not see the workspace.
    """
    plans = [plan_run(settings, submission(Job(stage, settings, workspace))) for stage in stages]
    if not plans:
        return
    cluster = connect(plans[0].how.namespace, plans[0].how.context)
    for plan in plans:
        try:
            cluster.dry_run(jobset(plan))
        except Exists:  # of an earlier attempt at this run, at work or ended: submitting it looks closer
            continue
