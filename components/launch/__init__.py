"""Where the training stage runs.

- `base` — `Launcher`, `Job`, `JobStatus`: submit, look, read the log, cancel
- `inline` — in this process
"""

from components.launch.base import Job, JobFailed, JobStatus, Launcher
from components.launch.inline import InlineLauncher

LAUNCHERS: dict[str, type[Launcher]] = {"inline": InlineLauncher}
"""Names as in ``launch.kind``."""

__all__ = ["LAUNCHERS", "Job", "JobFailed", "JobStatus", "Launcher"]
