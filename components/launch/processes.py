"""In a process of its own on this machine, with the servers and ranks that the stage starts below it.

One guardian holds the whole tree: when the job ends, is cancelled, or loses whoever submitted it, nothing stays behind.
Every process has a log of its own under ``logs/``: this one ``driver.log``, servers ``rollout-N.log``, ranks
``learner-N.log``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from components.config import Settings, dump
from components.errors import EXIT_NO_CANDIDATE
from components.files import write_text
from components.launch.base import Job, JobStatus, Launcher
from components.layout import Layout
from components.processes import Child
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
        write_text(config, dump(inline(job.settings)))
        clear_status(layout, job.stage)
        command = [sys.executable, *MODULE, job.stage, "--config", str(config)]
        log = driver_log(layout)
        self._began[job_id] = log.stat().st_size if log.exists() else 0
        lines = {PROGRESS_VARIABLE: os.devnull}  # in its log, and no bar
        child = Child("driver", command, log=log, env=lines, cwd=job.workspace, grace=GRACE)
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
        if said is None:  # it was killed before it could say anything
            return JobStatus("failed", code, child.ending())
        if said.exit_code == 0:
            return JobStatus("succeeded", 0)
        # Whoever reads this knows of the log of the process that waits, and of no other.
        log = "" if said.exit_code == EXIT_NO_CANDIDATE else f"\n  its own log: {child.log.absolute()}"
        return JobStatus("failed", said.exit_code, said.message + log)

    def logs(self, job_id: str) -> Iterator[str]:
        _, child = self._jobs[job_id]
        with child.log.open(encoding="utf-8", errors="replace") as lines:
            yield from (line.rstrip("\n") for line in lines)

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


def inline(settings: Settings) -> Settings:
    """The same settings for the process that is the job: it must not launch itself again."""
    return settings.model_copy(update={"launch": settings.launch.model_copy(update={"kind": "inline"})})


def driver_log(layout: Layout) -> Path:
    """Where the stage's own output goes."""
    return layout.logs / "driver.log"
