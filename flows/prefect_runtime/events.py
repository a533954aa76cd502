"""What other flows and automations may react to, told to the Prefect server as events.

- ``checkpoint.candidate`` — there is a new candidate; starts the deployment `promote`
- ``checkpoint.waiting`` — the gate let it pass, and a person has to decide
- ``evenkeel.flow-run.suspended`` — a flow run gives no signs of life any more, and that is as it should be
- ``evenkeel.run.collapsed`` — the monitor stopped the training
- ``evenkeel.run.refused`` — everything worked, and the answer is no for another reason

Events are not kept where nobody listens: the registry and the run's own files are what counts.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from prefect.events import emit_event

from components.files import read_json
from flows.governance.registry import decision_on, project_store
from flows.promoting.registries import name_of
from flows.run.outcome import Outcome
from flows.run.workspace import Workspace

CANDIDATE, WAITING = "checkpoint.candidate", "checkpoint.waiting"
SUSPENDED = "evenkeel.flow-run.suspended"
COLLAPSED, REFUSED = "evenkeel.run.collapsed", "evenkeel.run.refused"


def announce(workspace: Workspace, outcome: Outcome) -> None:
    """Tell what a run came to. A candidate that was decided upon before is no news."""
    about: dict[str, Any] = {"run": workspace.run_id, "report": str(workspace.layout.report)}
    if outcome.candidate is None:
        kind = COLLAPSED if collapsed(workspace) else REFUSED
        resource = {
            "prefect.resource.id": f"evenkeel.run.{workspace.run_id}",
            "prefect.resource.name": workspace.run_id,
        }
        emit_event(kind, resource=resource, payload={**about, "reason": outcome.reason})
    elif decision_on(project_store(workspace.project, workspace.settings), outcome.candidate) is None:
        emit_event(
            CANDIDATE,
            resource=_candidate(outcome.candidate, workspace.run_id),
            payload={**about, "digest": outcome.candidate, "registry": name_of(workspace.settings.registry)},
        )


def waiting(digest: str, run_id: str, needed: str) -> None:
    """Tell that a person has to decide. Call it inside a flow run, which the event then names.

    Args:
        needed: what is needed, in words.
    """
    emit_event(
        WAITING, resource=_candidate(digest, run_id), payload={"run": run_id, "digest": digest, "needed": needed}
    )


def suspended(flow_run: UUID) -> None:
    """Tell that a flow run waits without a process, after all the signs of life that it gave.

    The server says so itself, and too early: what it says overtakes the last sign of life of a short execution, which
    then seems to be followed by nothing.
    """
    emit_event(SUSPENDED, resource={"prefect.resource.id": f"prefect.flow-run.{flow_run}"})


def _candidate(digest: str, run_id: str) -> dict[str, str]:
    return {
        "prefect.resource.id": f"evenkeel.candidate.{digest}",
        "prefect.resource.name": f"{run_id} {digest[:12]}",
    }


def collapsed(workspace: Workspace) -> bool:
    """Whether the monitor ended the training of this run."""
    metrics = workspace.layout.train_metrics
    return metrics.exists() and read_json(metrics)["stopped_by"] is not None
