"""In this process: what the demo does, and what a stage started by hand does."""

from __future__ import annotations

from collections.abc import Iterator

from components.launch.base import Job, JobStatus, Launcher
from components.layout import Layout
from components.stages import run_stage


class InlineLauncher(Launcher):
    """`submit` runs the stage and returns when it has ended, so there is never anything to cancel.

    What the stage raises is raised by `submit`, with its own traceback.
    """

    def __init__(self) -> None:
        self._statuses: dict[str, JobStatus] = {}

    def submit(self, job: Job) -> str:
        run_stage(job.stage, job.settings, Layout(job.workspace))
        job_id = f"{job.stage}-{len(self._statuses)}"
        self._statuses[job_id] = JobStatus("succeeded", 0)
        return job_id

    def status(self, job_id: str) -> JobStatus:
        return self._statuses[job_id]

    def logs(self, job_id: str) -> Iterator[str]:
        """Nothing: the stage wrote to this process's own output."""
        self.status(job_id)
        return iter(())

    def cancel(self, job_id: str) -> None:
        """Nothing to do: the job has ended."""
        self.status(job_id)
