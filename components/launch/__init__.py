"""Where the training stage runs.

- `base` — `Launcher`, `Job`, `JobStatus`: submit, look, read the log, cancel
- `inline` — in this process
- `processes` — in a process of its own on this machine
"""

from components.launch.base import Job, JobFailed, JobStatus, Launcher
from components.launch.inline import InlineLauncher
from components.launch.processes import ProcessLauncher

LAUNCHERS: dict[str, type[Launcher]] = {"inline": InlineLauncher, "processes": ProcessLauncher}
"""Names as in ``launch.kind``."""

__all__ = ["LAUNCHERS", "Job", "JobFailed", "JobStatus", "Launcher"]
