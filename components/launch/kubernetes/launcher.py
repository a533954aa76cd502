"""In pods of a cluster: one JobSet per run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from components.config import dump
from components.errors import CorrectableError, InputError
from components.files import write_text
from components.launch.base import Job, JobStatus, Launcher
from components.launch.kubernetes.api import Cluster, Unreachable
from components.launch.kubernetes.following import Follower
from components.launch.kubernetes.janitor import last_moment
from components.launch.kubernetes.manifests import jobset
from components.launch.kubernetes.names import OURS, RUN, SPEC, STAGE, WORKSPACE
from components.launch.kubernetes.observed import Observed, changes, gather, labels, notes
from components.launch.kubernetes.plan import RunPlan, plan_run
from components.launch.kubernetes.status import final_status, status_of
from components.launch.kubernetes.submission import depot, submission
from components.launch.processes import driver_log
from components.layout import Layout
from components.pods.code import copy_installed
from components.pods.workspace import put_input, take_output
from components.progress import remarked
from components.status import clear_status

GONE = 600.0
"""Seconds that pods of an ended run may take to go away, besides their grace."""
FORGIVEN = 900.0
"""Seconds for which a cluster may refuse requests. A server that is starting knows no users for a moment, and expired
credentials can be renewed meanwhile: they are read again."""


@dataclass(slots=True)
class Submitted:
    """A job that is on the cluster, as the one JobSet that has this uid. ``cancelled`` states why, where it was."""

    job: Job
    plan: RunPlan
    cluster: Cluster
    uid: str
    cancelled: str = ""


class KubernetesLauncher(Launcher):
    """A job's id is the name of its JobSet. One that is there already, of the very same run, is taken over: whoever
    submitted it has died.

    Raises:
        InputError: there is no cluster, or it refuses the run; nothing half-made is left on it.
    """

    def __init__(self, connect: Callable[[str, str | None], Cluster] = Cluster.connect) -> None:
        self._connect = connect
        self._jobs: dict[str, Submitted] = {}

    def submit(self, job: Job) -> str:
        plan = plan_run(job.settings, submission(job))
        cluster = self._connect(plan.how.namespace, plan.how.context)
        layout, manifest = Layout(job.workspace), jobset(plan)
        uid = self._running(cluster, plan, manifest)
        if uid is None:
            cluster.dry_run(manifest)
            clear_status(layout, job.stage)
            write_text(job.workspace / plan.submission.config, dump(plan.settings))
            copy_installed(job.workspace)
            if (there := depot(plan)) is not None:
                put_input(job.workspace, there, job.stage, job.settings, Path(plan.submission.config))
            uid = str(cluster.create(manifest)["metadata"]["uid"])
        self._jobs[plan.name] = Submitted(job, plan, cluster, uid)
        return plan.name

    def _running(self, cluster: Cluster, plan: RunPlan, manifest: dict[str, Any]) -> str | None:
        """The uid of the JobSet of this very run that is at work; one that has ended makes room."""
        there = cluster.jobset(plan.name)
        if there is None:
            return None
        where, uid = f"JobSet {plan.name} in namespace {plan.how.namespace}", str(there["metadata"]["uid"])
        wanted, found = manifest["metadata"]["annotations"], notes(there)
        # Stage sft of run a is called as run a-sft is.
        ours = {**OURS, RUN: plan.labels[RUN]}.items() <= labels(there).items()
        if not ours or found.get(STAGE) != plan.submission.stage:
            raise InputError("another object has the name of this run", where=where, how="rename the run (name)")
        if there["metadata"].get("deletionTimestamp") or status_of(gather(cluster, plan.name)).ended:
            cluster.delete_jobset(plan.name, uid)
            await_gone(cluster, plan.name, uid, GONE + plan.how.grace)
            return None
        if found.get(SPEC) != wanted[SPEC] or found.get(WORKSPACE) != wanted[WORKSPACE]:
            raise InputError(
                f"run {plan.submission.run} is on the cluster already, from {found.get(WORKSPACE)} and with other "
                "settings or code",
                where=where,
                how=f"wait for its end, or `evenkeel cluster cancel {plan.name} -n {plan.how.namespace}`",
            )
        return uid

    def status(self, job_id: str) -> JobStatus:
        return self._observed(self._jobs[job_id])[0]

    @staticmethod
    def _observed(one: Submitted) -> tuple[JobStatus, Observed]:
        """How it is, and what that was judged by."""
        if not one.cancelled:
            observed = gather(one.cluster, one.plan.name, one.uid)
            if not one.cancelled:  # meanwhile
                return final_status(one.job, observed), observed
        return JobStatus("cancelled", None, one.cancelled), Observed(None)

    def cancel(self, job_id: str) -> None:
        one = self._jobs[job_id]
        try:
            if not self.status(job_id).ended:
                self._end(one, f"stage {one.job.stage} was cancelled; submit it again to go on")
        except CorrectableError as error:  # whoever interrupted the wait would think that it is over
            error.what += f"; JobSet {one.plan.name} goes on"
            again = f"evenkeel cluster cancel {one.plan.name} -n {one.cluster.namespace}"
            error.how = f"{error.how or 'try again'}; then: {again}"
            raise

    @staticmethod
    def _end(one: Submitted, why: str) -> None:
        one.cancelled = why  # before it goes: whoever waits is to know why
        try:
            one.cluster.delete_jobset(one.plan.name, one.uid)
        except BaseException:
            one.cancelled = ""
            raise

    def wait(self, job_id: str, poll: float = 10.0) -> JobStatus:
        """Block until the job has ended; what rank 0 prints is written to ``logs/driver.log``, and what happens to the
        pods is reported (`components.progress`).

        Requests to a cluster that does not answer, or refuses, are repeated: the pods go on without us.

        Raises:
            InputError: it has refused for `FORGIVEN` seconds.
        """
        one, reported = self._jobs[job_id], ""
        refused: float | None = None  # since when
        with Follower(one.cluster, one.plan.name, one.uid, one.job.stage, driver_log(Layout(one.job.workspace))):
            for _ in changes(one.cluster, one.plan.name, poll):
                try:
                    status, observed = self._look(one)
                    refused = None
                except CorrectableError as error:
                    if isinstance(error, Unreachable):
                        refused = None
                    elif refused is None:
                        refused = time.monotonic()
                    elif time.monotonic() - refused > FORGIVEN:
                        raise
                    what = f"the cluster does not answer; still waiting: {error.what}"
                    status, observed = JobStatus("running", None, what), Observed(None)
                if status.ended:
                    return self._concluded(one, status, observed)
                if status.message not in ("", reported):
                    reported = status.message
                    remarked(one.job.stage, f"{job_id}: {status.state}: {reported}")
        raise AssertionError("a watch never ends")

    def _look(self, one: Submitted) -> tuple[JobStatus, Observed]:
        """How it is; it is ended where it should be over."""
        status, observed = self._observed(one)
        last = last_moment(observed.jobset or {})
        if not status.ended and last is not None and datetime.now(UTC) > last:
            how = "raise launch.kubernetes.deadline and submit it again: it goes on from its newest checkpoint"
            self._end(one, f"it was to be over at {last:%Y-%m-%d %H:%M} UTC, and was cancelled\n  fix:   {how}")
            status = self.status(one.plan.name)
        return status, observed

    @staticmethod
    def _concluded(one: Submitted, status: JobStatus, observed: Observed) -> JobStatus:
        """How it ended, once what it wrote is here. No further request is made: the cluster may be unreachable, or the
        JobSet gone."""
        if status.state == "cancelled":
            return status
        if (there := depot(one.plan)) is not None:
            take_output(one.job.workspace, there, one.job.stage)
        return final_status(one.job, observed)


def await_gone(cluster: Cluster, name: str, uid: str, seconds: float) -> None:
    """Wait until a JobSet that is being deleted is gone, with all that it owns.

    Raises:
        InputError: it is not, after so long.
    """
    until, remarked_once = time.monotonic() + seconds, False
    while (there := cluster.jobset(name)) is not None and there["metadata"]["uid"] == uid:
        if not remarked_once:
            print(f"{name}: waits until the JobSet of this name is gone", file=sys.stderr, flush=True)
            remarked_once = True
        if time.monotonic() > until:
            how = f"a node may not answer: kubectl -n {cluster.namespace} describe jobset {name}"
            raise InputError(f"the JobSet of the run before is not gone after {seconds:g} s", where=name, how=how)
        time.sleep(1)
