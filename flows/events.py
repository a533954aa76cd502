"""What other flows and automations may react to, told to the Prefect server as events.

- ``checkpoint.candidate`` — a checkpoint awaits a decision; starts the deployment `promote`
- ``evenkeel.run.collapsed`` — the monitor stopped the training
- ``evenkeel.run.refused`` — everything worked, and the answer is no for another reason

Events are not kept where nobody listens: the registry and the run's own files are what counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefect.events import emit_event

from components.files import read_json
from flows.registry import decision_on, project_store
from flows.workspace import Workspace

if TYPE_CHECKING:
    from flows.post_training import Outcome

CANDIDATE, COLLAPSED, REFUSED = "checkpoint.candidate", "evenkeel.run.collapsed", "evenkeel.run.refused"


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
            resource={
                "prefect.resource.id": f"evenkeel.candidate.{outcome.candidate}",
                "prefect.resource.name": f"{workspace.run_id} {outcome.candidate[:12]}",
            },
            payload={**about, "digest": outcome.candidate, "registry": str(workspace.settings.registry.path)},
        )


def collapsed(workspace: Workspace) -> bool:
    """Whether the monitor ended the training of this run."""
    metrics = workspace.layout.train_metrics
    return metrics.exists() and read_json(metrics)["stopped_by"] is not None
