"""What the cluster would refuse when a stage comes to it, it refuses before the first stage begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from components.config import Settings
from components.launch.base import Job
from components.launch.kubernetes.api import Cluster, Exists
from components.launch.kubernetes.manifests import jobset
from components.launch.kubernetes.plan import plan_run
from components.launch.kubernetes.submission import submission


def rehearse(
    settings: Settings,
    workspace: Path,
    stages: Iterable[str],
    connect: Callable[[str, str | None], Cluster] = Cluster.connect,
) -> None:
    """Go through the motions of submitting these stages; nothing is made.

    Args:
        workspace: where they will run; it need not be there yet.

    Raises:
        InputError: there is no cluster, or it would refuse one of them, or its pods could not see the workspace.
    """
    plans = [plan_run(settings, submission(Job(stage, settings, workspace))) for stage in stages]
    if not plans:
        return
    cluster = connect(plans[0].how.namespace, plans[0].how.context)
    for plan in plans:
        try:
            cluster.dry_run(jobset(plan))
        except Exists:  # of an earlier attempt at this run, at work or ended: submitting it looks closer
            continue
