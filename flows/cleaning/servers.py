"""What servers believe of runs that are gone: flow runs of a Prefect server, and JobSets of the present cluster.

Of a flow run only the workspace's own record is used: which process ran it, on this machine, for which flow run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from components.errors import CorrectableError
from flows.cleaning.leftovers import CleanupAction
from flows.host.processes import mark_of, marked
from flows.prefect_runtime.server import PrefectServer, ServerUnavailable
from flows.serving.under_way import UNDER_WAY, ZOMBIE
from flows.watching.execution import Execution
from flows.watching.runs import RunView

TIMEOUT = 5.0
"""Seconds for one request."""
CANCELLING = timedelta(minutes=1)
"""How long a worker may take to cancel what it runs."""
FLOW_RUN = "PREFECT__FLOW_RUN_ID"


def close_dead(runs: Iterable[RunView], api: str | None) -> Iterator[CleanupAction]:
    """Set the state of flow runs whose process is gone. ``api`` is for runs that had a server of their own: the server
    with the project's database.
    """
    unreachable: set[str] = set()
    for run in runs:
        execution = run.execution
        if execution is None or execution.standing != "dead" or not execution.here:
            continue
        url = execution.api or api
        if url is None or url in unreachable:
            continue
        try:
            yield from _close_dead(execution, url)
        except ServerUnavailable as error:
            unreachable.add(url)
            yield CleanupAction("server", url, "left alone", f"it {error.predicate}")


def _close_dead(execution: Execution, url: str) -> Iterator[CleanupAction]:
    with PrefectServer(url, timeout=TIMEOUT) as server:
        for id in dict.fromkeys((execution.deployed, execution.flow_run)):
            if id is None or any(mark_of(process, FLOW_RUN) == id for process in marked(FLOW_RUN)):
                continue  # nothing to close, or a process of this machine was started for it
            found = server.get(f"/flow_runs/{id}")
            wanted = None if found is None else target_state(execution, found["state"])
            if wanted is not None:
                server.set_state(id, wanted, force=True)
                why = f"process {execution.pid} of {execution.run_id} is gone"
                yield CleanupAction("flow run", id, f"{found['state']['name']} -> {wanted['name']}", why)


def target_state(execution: Execution, state: dict[str, Any] | None) -> dict[str, str] | None:
    """The state that a flow run of a dead execution should have; None if it has that state, or another process may have
    started it again."""
    if state is None or state["type"] not in UNDER_WAY:
        return None
    since = datetime.fromisoformat(state["timestamp"])
    if state["type"] == "CANCELLING":
        message = f"Cancelled; process {execution.pid} is gone."
        late = datetime.now(UTC) - since > CANCELLING
        return {"type": "CANCELLED", "name": "Cancelled", "message": message} if late else None
    if since > datetime.fromisoformat(execution.began) + timedelta(seconds=1):  # `began` has no fractions
        return None
    message = f"{ZOMBIE}: process {execution.pid} of run {execution.run_id} is gone."
    return {"type": "CRASHED", "name": "Crashed", "message": message}


def remove_orphans(project: Path, namespace: str) -> Iterator[CleanupAction]:
    """Delete the orphaned JobSets of a namespace. A JobSet of an unknown run is kept."""
    from components.launch.kubernetes.api import Cluster
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
