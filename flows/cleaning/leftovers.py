"""What dead runs left on this machine: processes, partial files and folders, and weights for servers that are gone.

`components.files` fills what it writes under a temporary name, `.NAME.xxxxxxxx`, and renames it; a kill in between
leaves that. Its owner removes it when it next writes there, which may be never.

And what servers believe of runs that are gone: flow runs of a Prefect server, and JobSets of the present cluster. Of a
flow run only the workspace's own record is used: which process ran it, on this machine, for which flow run.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import psutil

from components.errors import CorrectableError
from components.processes.living import abandoned
from flows.host.processes import OWNER_VARIABLE, end, leftovers, mark_of, marked
from flows.prefect_runtime.server import WITH_PROCESS, ZOMBIE, PrefectServer, ServerUnavailable
from flows.watching.execution import Execution
from flows.watching.runs import RunView

Kind = Literal[
    "process", "folder", "weights", "flow run", "workspace", "bucket", "server", "candidate", "jobset", "cluster"
]
GRACE = 6.0
"""Seconds that the children of a run that ended in order need to end of themselves: its own Prefect server, say."""
TEMPORARY = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}(?P<old>\.old)?")
"""As Python's `tempfile` names it. ``.old`` is what was there before, on its way out."""
REMOVED = ".removed-"
"""What is being removed has a name of its own, which no writer looks for."""
AGE = 3600.0
"""Seconds without a change after which a file counts as abandoned."""
WITHIN = ("out", ".state")
"""Parts of a workspace that stages write."""


@dataclass(frozen=True, slots=True)
class CleanupAction:
    """``what`` was found, ``done`` with it, and ``why``."""

    kind: Kind
    what: str
    done: str
    why: str


def end_leftovers(project: Path, grace: float = GRACE) -> Iterator[CleanupAction]:
    """End the processes of this project whose run is gone, and was gone some seconds ago as well."""
    seen = set(leftovers(project))
    if not seen:
        return
    time.sleep(grace)
    # Searched again: another run may have started in between, and its processes are not in `seen`.
    left = [process for process in leftovers(project) if process in seen]
    commands = {
        process.pid: (_command(process), mark_of(process, OWNER_VARIABLE).partition(":")[0]) for process in left
    }
    for pid in end(left):
        command, owner = commands.get(pid, ("", ""))
        yield CleanupAction("process", f"{pid} {command}".rstrip(), "ended", f"its run, process {owner}, is gone")


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:80]
    except psutil.Error:
        return ""


def remove_partial(project: Path, runs: Iterable[RunView]) -> Iterator[CleanupAction]:
    """Remove partial files without a change for an hour; nothing of a running run."""
    state = project / ".state"
    places = [project / "runs", project / "registry", state, state / "reproductions"]
    found = [path for place in places for path in place.glob(".*")]
    found += _below(project / "registry")
    for run in runs:
        if not run.running:
            found += [path for part in WITHIN for path in _below(run.root / part)]
    for path in dict.fromkeys(found):
        matched = TEMPORARY.fullmatch(path.name)
        if not matched and not path.name.startswith(REMOVED):
            continue
        if matched and matched["old"] and not (path.parent / matched["name"]).exists():
            continue  # the only copy there is: the next writer puts it back
        age = time.time() - _changed(path)
        if age > AGE and remove(path):
            yield CleanupAction("folder", str(path.relative_to(project)), "removed", f"partial, {age / 3600:.0f} h old")


def _below(folder: Path) -> Iterator[Path]:
    """All hidden names below a folder; what is below these is not looked at, nor are links followed."""
    for parent, folders, files in os.walk(folder):
        hidden = [name for name in (*folders, *files) if name.startswith(".")]
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(parent) / name for name in hidden)


def _changed(path: Path) -> float:
    """When anything in it was last changed; now, where it is gone or cannot be looked at."""
    try:
        below = [Path(parent) / name for parent, folders, files in os.walk(path) for name in (*folders, *files)]
        return max(one.lstat().st_mtime for one in (path, *below))
    except OSError:
        return time.time()


def remove(path: Path) -> bool:
    """Rename it, so that no writer finds it, then remove it; False if another process already did."""
    renamed = path.with_name(f"{REMOVED}{secrets.token_hex(4)}")
    try:
        os.replace(path, renamed)
    except OSError:
        return False
    if renamed.is_dir() and not renamed.is_symlink():
        shutil.rmtree(renamed, ignore_errors=True)
    else:
        renamed.unlink(missing_ok=True)
    return not renamed.exists()


def remove_weights(runs: Iterable[RunView]) -> Iterator[CleanupAction]:
    """Remove folders in which dead runs handed weights to their servers, or their ranks met."""
    places = {Path(tempfile.gettempdir())}
    for run in runs:
        folder = getattr(run.settings.rollout.engine, "folder", None) if run.settings else None
        if folder is not None:
            places.add(run.root / folder)
    for place in sorted(places):
        for path in sorted(place.glob("evenkeel-*")):
            if path.is_dir() and not path.is_symlink() and abandoned(path) and remove(path):
                yield CleanupAction("weights", str(path), "removed", "the run that they were for is gone")


TIMEOUT = 5.0
"""Seconds for one request to a server."""
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
    if state is None or state["type"] not in WITH_PROCESS:
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
