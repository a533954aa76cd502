"""Where the training stage runs, if not in this process (``launch.kind: inline``).

- `base` — `Launcher`, `Job`, `JobStatus`: submit, look, wait, cancel
- `processes` — in a process of its own on this machine
- `kubernetes` — in pods of a cluster
"""

from collections.abc import Callable

from components.launch.base import Job, JobFailed, JobStatus, Launcher
from components.launch.processes import ProcessLauncher


def _kubernetes() -> Launcher:
    from components.launch.kubernetes.launcher import KubernetesLauncher  # loads boto3, which takes a second

    return KubernetesLauncher()


LAUNCHERS: dict[str, Callable[[], Launcher]] = {"processes": ProcessLauncher, "kubernetes": _kubernetes}
"""Names as in ``launch.kind``."""

__all__ = ["LAUNCHERS", "Job", "JobFailed", "JobStatus", "Launcher"]
