"""JobSets of runs that are over, on the cluster of the present context."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from components.errors import CorrectableError
from flows.cleaning.action import CleanupAction
from flows.watching.runs import RunView


def remove_orphans(project: Path, namespace: str) -> Iterator[CleanupAction]:
    """Delete the orphaned JobSets of a namespace. A JobSet of an unknown run is kept."""
    from components.launch.kubernetes.api import Cluster  # loads the client, which takes a second
    from components.launch.kubernetes.janitor import sweep

    try:
        for removal in sweep(Cluster.connect(namespace), lambda run, workspace: alive(project, run, workspace)):
            yield CleanupAction("jobset", removal.name, "deleted", removal.why)
    except CorrectableError as error:
        yield CleanupAction("cluster", namespace, "left alone", error.what)


def alive(project: Path, run_id: str, workspace: str) -> bool | None:
    """Whether a flow runs it; None where this project knows nothing of it, or has a run of its own by that name."""
    view = RunView(project, run_id)
    if Path(workspace) != view.root.absolute():
        return None
    execution = view.execution
    return None if execution is None else execution.alive
