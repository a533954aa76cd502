"""The estimate in the Prefect UI."""

from __future__ import annotations

from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact

from flows.budget.display import line, markdown
from flows.budget.estimate import Estimate
from flows.run.workspace import Workspace

ESTIMATE = "run-estimate"


def publish_estimate(workspace: Workspace, found: Estimate) -> None:
    """Show how long the run will take, and by what that is known. Call it inside a flow run."""
    text = markdown(workspace, found)
    create_markdown_artifact(text, key=ESTIMATE, description=f"Estimate for {workspace.run_id}")
    get_run_logger().info("%s", line(workspace, found))
