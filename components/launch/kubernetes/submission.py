"""Who submits a job from here, and where its files go."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from components.code_digest import code_digest
from components.config.kubernetes import KubernetesSettings, S3State
from components.installed import pins_digest
from components.launch.base import Job
from components.launch.kubernetes.owner import submitter
from components.launch.kubernetes.ownership import user_of
from components.launch.kubernetes.plan import USER, RunPlan, Submission, address
from components.pods.code import code_folder
from components.pods.depot import Depot


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
    here = Depot.of(address(run, stage, how, shared))
    return replace(here, endpoint_url=here.endpoint_url or shared.endpoint_url, region=here.region or shared.region)
