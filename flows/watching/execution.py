"""Who runs a workspace now, or ran it last: one small file in it, `.state/execution.json`.

It is written when a flow takes the workspace, and again when the flow ends. A process that is killed outright cannot
write the second time; its id and creation time show that it is gone, even if another process has the id.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from components.errors import InputError, NoCandidate
from components.files import os_errors, read_json, write_json
from components.layout import Layout
from components.processes.living import alive, born
from flows.run.workspace import UNKNOWN_REQUEST, RunRequest, Workspace

REQUEST = "asked"
"""The key of the request in the file; earlier versions wrote it so."""
State = Literal["running", "candidate", "refused", "failed", "stopped", "done"]
"""`done`: a flow that proposes nothing has ended; `refused`: the answer is no; `stopped`: by a signal, or cancelled."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of a flow in a workspace. Times are UTC in ISO format."""

    run_id: str
    flow: str
    pid: int
    created: float
    """When the process began, as `components.processes.living.born` counts it: ids are used again."""
    host: str
    began: str
    commit: str
    request: RunRequest = UNKNOWN_REQUEST
    flow_run: str | None = None
    """The flow run on the Prefect server."""
    deployed: str | None = None
    """The flow run for which a worker started the process: cancellation is requested for this one."""
    api: str | None = None
    """The Prefect server's address; none where a temporary server served this run alone."""
    state: State = "running"
    ended: str | None = None
    reason: str = ""
    """Why there is no candidate, or what failed."""
    candidate: str | None = None

    @property
    def here(self) -> bool:
        """Whether it runs, or ran, on this machine: only then can its process be seen."""
        return self.host == platform.node()

    @property
    def alive(self) -> bool:
        """Whether it still runs. A process on another machine counts as running until its end is recorded."""
        return self.ended is None and (not self.here or alive(self.pid, self.created))

    @property
    def standing(self) -> State | Literal["dead"]:
        """Its state; `dead` where the process is gone and could not say how it ended."""
        return "dead" if self.ended is None and not self.alive else self.state


def _path(root: Path) -> Path:
    return Layout(root).state / "execution.json"


def read(root: Path) -> Execution | None:
    """The latest execution in the workspace ``root``; None where no flow ever took it. A file that `executing` did not
    write is an `InputError`."""
    path, how = _path(root), "remove it; the run itself does not need it"
    if not path.exists():
        return None
    row = read_json(path, how=how)
    try:
        stored = row.pop(REQUEST)
        row["request"] = RunRequest(**{**stored, "overrides": tuple(stored["overrides"])})
        return Execution(**{field.name: row[field.name] for field in fields(Execution)})
    except (KeyError, TypeError) as error:
        raise InputError(f"not a record of an execution: {error}", where=path, how=how) from error


def write(root: Path, execution: Execution) -> None:
    """Write it, atomically."""
    row: dict[str, Any] = asdict(execution)
    row[REQUEST] = row.pop("request")
    write_json(_path(root), row)


def now() -> str:
    """The present time as it stands in an execution."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def executing(workspace: Workspace, flow: str) -> Iterator[Callable[[str | None, str], None]]:
    """Say that this process runs the workspace by the named flow, and at the end how it went. Hold the workspace around
    it. What it yields notes a candidate's digest, or None and why there is none, which is written at the end."""
    flow_run, deployed, api = _in_prefect()
    started = Execution(
        run_id=workspace.run_id,
        flow=flow,
        pid=os.getpid(),
        created=born(),
        host=platform.node(),
        began=now(),
        request=workspace.request,
        commit=workspace.snapshot.commit,
        flow_run=flow_run,
        deployed=deployed,
        api=api,
    )
    write(workspace.root, started)
    with os_errors("remove", workspace.progress):
        workspace.progress.unlink(missing_ok=True)  # it holds the progress of one execution
    outcome = replace(started, state="done")

    def set_outcome(candidate: str | None, reason: str) -> None:
        nonlocal outcome
        outcome = replace(started, state="candidate" if candidate else "refused", candidate=candidate, reason=reason)

    def end(state: State, reason: str) -> None:
        write(workspace.root, replace(outcome, state=state, reason=reason, ended=now()))

    try:
        yield set_outcome
    except NoCandidate as refusal:
        end("refused", str(refusal))
        raise
    except Exception as error:
        end("failed", str(error) or type(error).__name__)
        raise
    except BaseException:  # a signal, or Prefect's own ways to leave a flow
        end("stopped", "")
        raise
    end(outcome.state, outcome.reason)


def _in_prefect() -> tuple[str | None, str | None, str | None]:
    """The flow run around this call, the one that a worker started this process for, and their server."""
    from prefect.context import FlowRunContext

    from flows.prefect_runtime.environment import lasting_server

    context = FlowRunContext.get()
    flow_run = str(context.flow_run.id) if context and context.flow_run else None
    return flow_run, os.environ.get("PREFECT__FLOW_RUN_ID"), lasting_server()
