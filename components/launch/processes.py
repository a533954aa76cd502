"""In a process of its own on this machine, or one for each rank of the learner, with the servers that the stage starts.

One guardian holds the whole tree: when the job ends, is cancelled, or loses whoever submitted it, nothing stays behind.
Every process has a log of its own under ``logs/``: the stage, which is rank 0 of the learner, ``driver.log``, servers
``rollout-N.log``, other ranks ``learner-N.log``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from components.config import Settings, dump
from components.config.training import RANKED
from components.errors import EXIT_LOST, EXIT_NO_CANDIDATE, EXIT_STOPPED
from components.files import write_text
from components.launch.base import Job, JobStatus, Launcher
from components.layout import Layout
from components.processes import Child, free_port
from components.processes.environments import LOOPBACK, RANK_LOGS
from components.progress import PROGRESS_VARIABLE, relayed
from components.status import clear_status, read_status

MODULE = ["-m", "components"]
GRACE = 30.0
"""Seconds that a cancelled stage has to end its own servers and ranks."""


class ProcessLauncher(Launcher):
    """Jobs are children of this process, and end with it."""

    def __init__(self) -> None:
        self._jobs: dict[str, tuple[Job, Child]] = {}
        self._cancelled: set[str] = set()
        self._began: dict[str, int] = {}  # where in the log each job begins

    def submit(self, job: Job) -> str:
        layout, job_id = Layout(job.workspace), f"{job.stage}-{len(self._jobs)}"
        config = layout.state.absolute() / "launch" / f"{job.stage}.yaml"
        write_text(config, dump(job.settings if has_ranks(job) else inline(job.settings)))
        clear_status(layout, job.stage)
        command = [sys.executable, *module(job), job.stage, "--config", str(config)]
        log = driver_log(layout)
        self._began[job_id] = log.stat().st_size if log.exists() else 0
        child = Child("driver", command, log=log, env=environment(layout), cwd=job.workspace, grace=GRACE)
        self._jobs[job_id] = job, child
        return job_id

    def status(self, job_id: str) -> JobStatus:
        job, child = self._jobs[job_id]
        code = child.exit_code
        if code is None:
            return JobStatus("running")
        if job_id in self._cancelled:
            return JobStatus("cancelled", code, f"stage {job.stage} was cancelled; submit it again to go on")
        said = read_status(Layout(job.workspace), job.stage)
        if said is not None and said.exit_code == EXIT_STOPPED and code not in (0, EXIT_STOPPED):
            what = f"a rank of the learner failed, and the stage was stopped for it: {child.ending()}"
            return JobStatus("failed", code, what)  # only torchrun, which stopped it, knows the reason
        if said is None and has_ranks(job):
            what = f"rank 0 of the learner was lost, and with it the stage: {child.ending()}"
            return JobStatus("failed", EXIT_LOST, what)
        if said is None:  # it was killed before it could say anything
            return JobStatus("failed", code or 1, child.ending())
        if said.exit_code == 0:
            return JobStatus("succeeded", 0)
        # Whoever reads this knows of the log of the process that waits, and of no other.
        log = "" if said.exit_code == EXIT_NO_CANDIDATE else f"\n  its own log: {child.log.absolute()}"
        return JobStatus("failed", said.exit_code, said.message + log)

    def wait(self, job_id: str, poll: float = 1.0) -> JobStatus:
        """As `Launcher.wait`; what the stage says of its progress in its log is reported here."""
        job, child = self._jobs[job_id]
        with child.log.open(encoding="utf-8", errors="replace") as log:
            log.seek(self._began[job_id])
            rest = ""
            while True:
                status = self.status(job_id)
                *lines, rest = (rest + log.read()).split("\n")
                for line in lines:
                    relayed(line, job.stage)
                if status.ended:
                    return status
                time.sleep(poll)

    def cancel(self, job_id: str) -> None:
        _, child = self._jobs[job_id]
        if child.alive:
            self._cancelled.add(job_id)
            child.stop()


def module(job: Job) -> list[str]:
    """What Python is to run: the stage, or torchrun with a rank of it for each of `RankSettings.processes`."""
    if not has_ranks(job):
        return MODULE
    place = "1", str(job.settings.learner.ranks.processes), f"{LOOPBACK}:{free_port()}", "0"
    return ["-m", "components.processes.torchrun", *place, MODULE[1]]


def has_ranks(job: Job) -> bool:
    """Whether the stage's learner has several ranks, all of them on this machine."""
    return job.settings.learner.has_ranks and job.stage in RANKED


def environment(layout: Layout) -> dict[str, str]:
    """What the processes of a job find in their environment."""
    return {
        PROGRESS_VARIABLE: os.devnull,  # it is in the log, and there is no bar
        RANK_LOGS: str(layout.logs.absolute()),
        "PYTHONWARNINGS": "ignore::FutureWarning",  # about names inside of torch and DeepSpeed
        **({"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}),
    }


def inline(settings: Settings) -> Settings:
    """The same settings for the process that is the job: it must not launch itself again."""
    return settings.model_copy(update={"launch": settings.launch.model_copy(update={"kind": "inline"})})


def driver_log(layout: Layout) -> Path:
    """Where the stage's own output goes."""
    return layout.logs / "driver.log"
