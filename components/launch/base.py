"""The seam between a stage and the place where it runs."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from components.config import Settings
from components.errors import EXIT_BAD_INPUT, EvenkeelError

JobState = Literal["pending", "running", "succeeded", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Job:
    """One stage, with resolved settings, in a workspace (see `components.layout`)."""

    stage: str
    settings: Settings
    workspace: Path = Path()


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What was observed of a job. ``exit_code`` follows `components.errors` once the job has ended."""

    state: JobState
    exit_code: int | None = None
    message: str = ""

    @property
    def ended(self) -> bool:
        return self.state in ("succeeded", "failed", "cancelled")


class JobFailed(EvenkeelError):
    """A job ended without success; carries its exit code."""

    def __init__(self, job: Job, status: JobStatus) -> None:
        super().__init__(status.message or f"the job of stage {job.stage} was {status.state}")
        self.exit_code = EXIT_BAD_INPUT if status.exit_code is None else status.exit_code


class Launcher(ABC):
    """Runs jobs somewhere. Ids are the launcher's own; an unknown one raises ``KeyError``."""

    @abstractmethod
    def submit(self, job: Job) -> str:
        """Start ``job`` and return its id."""

    @abstractmethod
    def status(self, job_id: str) -> JobStatus:
        """The present state, from what can be observed now and nothing else."""

    @abstractmethod
    def cancel(self, job_id: str) -> None:
        """End the job and everything it started. A job that has ended stays as it is."""

    def wait(self, job_id: str, poll: float = 1.0) -> JobStatus:
        """Block until the job has ended, looking every ``poll`` seconds."""
        while not (status := self.status(job_id)).ended:
            time.sleep(poll)
        return status

    def run(self, job: Job) -> None:
        """Submit ``job`` and wait for its end; a wait that is interrupted cancels it.

        Raises:
            JobFailed: it failed or was cancelled.
        """
        job_id = self.submit(job)
        try:
            status = self.wait(job_id)
        except BaseException:  # or it would be left running
            self.cancel(job_id)
            raise
        if status.state != "succeeded":
            raise JobFailed(job, status)
