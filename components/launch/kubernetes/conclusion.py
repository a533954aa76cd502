"""How a run ended, by the status that its stage left in the workspace."""

from __future__ import annotations

from components.errors import EXIT_BAD_INPUT, EXIT_NO_CANDIDATE
from components.launch.base import Job, JobStatus
from components.launch.kubernetes.observed import Observed
from components.launch.kubernetes.status import status_of
from components.layout import Layout
from components.status import read_status

OVER = (EXIT_BAD_INPUT, EXIT_NO_CANDIDATE)
"""Exit codes after which nothing is started again."""


def final_status(job: Job, observed: Observed) -> JobStatus:
    """The status of a job. Where the JobSet was removed at the end of its TTL, only the stage's own status is left."""
    status = status_of(observed)
    said = read_status(Layout(job.workspace), job.stage) if status.state == "failed" else None
    if said is None:
        return status
    if observed.jobset is None and said.exit_code == 0:
        return JobStatus("succeeded", 0)
    believed = OVER if observed.jobset is None else (status.exit_code,)
    return JobStatus("failed", said.exit_code, said.message) if said.exit_code in believed else status
