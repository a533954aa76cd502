"""In pods of a cluster: one JobSet per run."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from typing import Any

from components.config import dump
from components.config.kubernetes import S3State
from components.errors import InputError
from components.files import code_digest, sha256_file, write_text
from components.launch.base import Job, JobStatus, Launcher
from components.launch.kubernetes.api import Cluster, Exists, Unreachable
from components.launch.kubernetes.following import Follower
from components.launch.kubernetes.manifests import jobset, secret
from components.launch.kubernetes.names import OURS, SPEC, WORKSPACE
from components.launch.kubernetes.observed import gather, name_of
from components.launch.kubernetes.ownership import user_of
from components.launch.kubernetes.plan import USER, RunPlan, Submission, address, plan_run
from components.launch.kubernetes.status import status_of
from components.launch.kubernetes.watching import changes
from components.launch.processes import driver_log
from components.layout import Layout
from components.pods.depot import Depot
from components.pods.workspace import put_input, take_output
from components.progress import remarked
from components.status import clear_status, read_status

OWNER = "EVENKEEL_RUN_OWNER"
"""Names whom a run belongs to, where the settings do not."""
GONE = 600.0
"""Seconds that pods of an ended run may take to go away."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job that is on the cluster, as the one JobSet that has this uid."""

    job: Job
    plan: RunPlan
    cluster: Cluster
    uid: str


class KubernetesLauncher(Launcher):
    """A job's id is the name of its JobSet. One that is there already, of the very same run, is taken over: whoever
    submitted it has died.

    Raises:
        InputError: there is no cluster, or it refuses the run; nothing half-made is left on it.
    """

    def __init__(self, connect: Callable[[str, str | None], Cluster] = Cluster.connect) -> None:
        self._connect = connect
        self._jobs: dict[str, Submitted] = {}
        self._cancelled: set[str] = set()

    def submit(self, job: Job) -> str:
        plan = plan_run(job.settings, submission(job))
        cluster = self._connect(plan.how.namespace, plan.how.context)
        layout, manifest = Layout(job.workspace), jobset(plan)
        uid = self._running(cluster, plan, manifest)
        if uid is None:
            cluster.dry_run(manifest)
            clear_status(layout, job.stage)
            write_text(job.workspace / plan.config, dump(plan.settings))
            if (there := depot(plan)) is not None:
                put_input(job.workspace, there, job.stage, job.settings, Path(plan.config))
            uid = self._create(cluster, plan, manifest)
        self._jobs[plan.name] = Submitted(job, plan, cluster, uid)
        return plan.name

    def _running(self, cluster: Cluster, plan: RunPlan, manifest: dict[str, Any]) -> str | None:
        """The uid of the JobSet of this very run that is at work; one that has ended makes room."""
        there = cluster.jobset(plan.name)
        if there is None:
            return None
        metadata = there["metadata"]
        where = f"JobSet {plan.name} in namespace {plan.how.namespace}"
        if not OURS.items() <= metadata.get("labels", {}).items():
            raise InputError("another object has the name of this run", where=where, how="rename the run (name)")
        if status_of(gather(cluster, plan.name)).ended:
            cluster.delete_jobset(plan.name, metadata["uid"])
            await_gone(cluster, plan.name, metadata["uid"])
            return None
        wanted, found = manifest["metadata"]["annotations"], metadata.get("annotations", {})
        if found.get(SPEC) != wanted[SPEC] or found.get(WORKSPACE) != wanted[WORKSPACE]:
            raise InputError(
                f"run {plan.submission.run} is on the cluster already, from {found.get(WORKSPACE)} and with other "
                "settings or code",
                where=where,
                how=f"wait for its end, or `evenkeel cluster cancel {plan.name} -n {plan.how.namespace}`",
            )
        self._share_key(cluster, plan, there)
        return str(metadata["uid"])

    def _create(self, cluster: Cluster, plan: RunPlan, manifest: dict[str, Any]) -> str:
        """The JobSet, then what belongs to it, so that one deletion removes everything."""
        made = cluster.create(manifest)
        try:
            self._share_key(cluster, plan, made)
        except BaseException:
            cluster.delete_jobset(plan.name, made["metadata"]["uid"])
            raise
        return str(made["metadata"]["uid"])

    def _share_key(self, cluster: Cluster, plan: RunPlan, owner: dict[str, Any]) -> None:
        """The pods wait for it. One that is there was made by a submission that came this far, and is kept."""
        if not plan.has_learner:
            return
        try:
            cluster.create(secret(plan, secrets.token_hex(32), owner))
        except Exists:
            return

    def status(self, job_id: str) -> JobStatus:
        one = self._jobs[job_id]
        if job_id in self._cancelled:
            return JobStatus("cancelled", None, f"stage {one.job.stage} was cancelled; submit it again to go on")
        observed = gather(one.cluster, one.plan.name)
        status = status_of(observed)
        if status.state != "failed":
            return status
        said = read_status(Layout(one.job.workspace), one.job.stage)  # in its own words, where we share a folder
        if said is None or said.exit_code != status.exit_code:
            return status
        return JobStatus("failed", said.exit_code, said.message)

    def logs(self, job_id: str) -> Iterator[str]:
        one = self._jobs[job_id]
        for pod in gather(one.cluster, one.plan.name).pods_of("driver"):
            yield from one.cluster.log(name_of(pod), "driver")

    def cancel(self, job_id: str) -> None:
        one = self._jobs[job_id]
        if not self.status(job_id).ended:
            self._cancelled.add(job_id)
            one.cluster.delete_jobset(one.plan.name, one.uid)

    def wait(self, job_id: str, poll: float = 10.0) -> JobStatus:
        """Block until the job has ended; what the driver prints is written to ``logs/driver.log``, and what becomes of
        the pods is told (`components.progress`)."""
        one, said = self._jobs[job_id], ""
        with Follower(one.cluster, one.plan.name, one.job.stage, driver_log(Layout(one.job.workspace))):
            for _ in changes(one.cluster, one.plan.name, poll):
                try:
                    status = self.status(job_id)
                except Unreachable as error:  # the pods do not need the API server: they go on
                    status = JobStatus("running", None, f"the cluster does not answer; still waiting: {error.what}")
                if status.message and status.message != said and not status.ended:
                    said = status.message
                    remarked(one.job.stage, f"{one.plan.name}: {status.state}: {said}")
                if status.ended:
                    return self._concluded(one, status)
                if datetime.now(UTC) > one.plan.until:
                    self.cancel(job_id)
        raise AssertionError("a watch never ends")

    def _concluded(self, one: Submitted, status: JobStatus) -> JobStatus:
        """How it ended, once what it wrote is here."""
        there = depot(one.plan)
        if there is None or status.state == "cancelled":
            return status
        take_output(one.job.workspace, there, one.job.stage)
        return self.status(one.plan.name)


def depot(plan: RunPlan) -> Depot | None:
    """Where the run's files lie, if in a bucket; the server may have another address here than in the cluster."""
    shared = plan.how.shared
    if not isinstance(shared, S3State):
        return None
    here = Depot.of(address(plan.submission, shared))
    return replace(here, endpoint_url=here.endpoint_url or shared.endpoint_url, region=here.region or shared.region)


def await_gone(cluster: Cluster, name: str, uid: str, seconds: float = GONE) -> None:
    """Wait until a JobSet that is being deleted is gone, with all that it owns.

    Raises:
        InputError: it is not, after so long.
    """
    until = time.monotonic() + seconds
    while (there := cluster.jobset(name)) is not None and there["metadata"]["uid"] == uid:
        if time.monotonic() > until:
            how = f"a node may not answer: kubectl -n {cluster.namespace} describe jobset {name}"
            raise InputError(f"the JobSet of the run before is not gone after {seconds:g} s", where=name, how=how)
        time.sleep(1)


def submission(job: Job) -> Submission:
    """Who submits a job from here, and what code and packages it must find."""
    how, root = job.settings.launch.kubernetes, job.workspace.absolute()
    user = user_of(how, root) if how else USER
    constraints = root / "constraints.txt"
    return Submission(
        stage=job.stage,
        workspace=root,
        run=root.name,
        owner=(how and how.owner) or os.environ.get(OWNER) or getuser(),
        code=code_digest(),
        constraints=sha256_file(constraints) if constraints.exists() else "",
        now=datetime.now(UTC),
        user=user,
    )
