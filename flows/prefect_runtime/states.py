"""The states that flows and tasks end in, beyond Prefect's own: a named answer, and a failure without a stack; and
events for the Prefect server, to which other flows and automations may react.

- ``checkpoint.candidate`` — there is a new candidate; starts the deployment `promote`
- ``checkpoint.waiting`` — a candidate passed the gate and needs a person's decision
- ``evenkeel.flow-run.suspended`` — a flow run is suspended: it sends no heartbeat until it resumes
- ``evenkeel.run.collapsed`` — the monitor stopped the training
- ``evenkeel.run.refused`` — the run ended without a candidate for another reason

An event without a listener is lost. The registry and the run's own files are authoritative.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast
from uuid import UUID

from prefect.client.schemas import State
from prefect.events import emit_event
from prefect.states import Completed, Failed

from components.errors import EvenkeelError
from components.files import read_json
from flows.governance.registry import decision_on, name_of, project_store
from flows.run.workspace import Outcome, Workspace

P = ParamSpec("P")
R = TypeVar("R")


def expected_failures(body: Callable[P, R]) -> Callable[P, R]:
    """Put it under ``@flow`` or ``@task``. Who calls these in Python still gets the failure raised.

    Prefect would log the whole stack of a misspelt setting, and show its last line. A bug keeps its traceback.
    """

    @functools.wraps(body)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return body(*args, **kwargs)
        except EvenkeelError as failure:
            state: Any = Failed(name=getattr(failure, "state_name", "Failed"), message=str(failure), data=failure)
            return cast("R", state)

    # Prefect would look for the names of the annotations in this module.
    wrapped.__signature__ = inspect.signature(body, eval_str=True)  # type: ignore[attr-defined]
    return wrapped


def completed_as(outcome: R, name: str, message: str) -> R:
    """End with ``outcome`` in a state of type Completed that the UI shows under ``name``; return what this returns."""
    state: Any = Completed(name=name, message=message, data=outcome)
    return cast("R", state)


def value(returned: R) -> R:
    """What a call of a task returned, or its failure (`expected_failures`) raised. Unlike a flow, a task that ends with
    a state of its own returns that state."""
    return cast("R", returned.result()) if isinstance(returned, State) else returned


CANDIDATE, WAITING = "checkpoint.candidate", "checkpoint.waiting"
SUSPENDED = "evenkeel.flow-run.suspended"
COLLAPSED, REFUSED = "evenkeel.run.collapsed", "evenkeel.run.refused"


def announce(workspace: Workspace, outcome: Outcome) -> None:
    """Emit the outcome of a run. A candidate that was already decided emits nothing."""
    about: dict[str, Any] = {"run": workspace.run_id, "report": str(workspace.layout.report)}
    if outcome.candidate is None:
        kind, resource = COLLAPSED if collapsed(workspace) else REFUSED, f"evenkeel.run.{workspace.run_id}"
        _emit(kind, resource, workspace.run_id, {**about, "reason": outcome.reason})
    elif decision_on(project_store(workspace.project, workspace.settings), outcome.candidate) is None:
        candidate = {"digest": outcome.candidate, "registry": name_of(workspace.settings.registry)}
        _emit_of(CANDIDATE, outcome.candidate, workspace.run_id, {**about, **candidate})


def waiting(digest: str, run_id: str, needed: str, decide: str) -> None:
    """Emit that a person has to decide: the approvals that are ``needed``, as text, and the command that approves it at
    a terminal. Call it inside a flow run, which the event then names."""
    _emit_of(WAITING, digest, run_id, {"run": run_id, "digest": digest, "needed": needed, "decide": decide})


def suspended(flow_run: UUID) -> None:
    """Emit that a flow run waits without a process, after its last heartbeat.

    The server's own event comes too early: it can overtake the last heartbeat of a short execution, after which the
    automation would expect another heartbeat.
    """
    emit_event(SUSPENDED, resource={"prefect.resource.id": f"prefect.flow-run.{flow_run}"})


def _emit_of(kind: str, digest: str, run_id: str, payload: dict[str, Any]) -> None:
    _emit(kind, f"evenkeel.candidate.{digest}", f"{run_id} {digest[:12]}", payload)


def _emit(kind: str, resource: str, name: str, payload: dict[str, Any]) -> None:
    emit_event(kind, resource={"prefect.resource.id": resource, "prefect.resource.name": name}, payload=payload)


def collapsed(workspace: Workspace) -> bool:
    """Whether the health monitor stopped the training of this run."""
    metrics = workspace.layout.train_metrics
    return metrics.exists() and read_json(metrics)["stopped_by"] is not None
