"""What the Prefect UI shows of a run: its health in plain words, the ledger of responses, and where the report is.

The keys are the same in every run, so that the UI has their history.
"""

from __future__ import annotations

from prefect import get_run_logger
from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from components.files import read_text
from components.health import read_ledger
from components.health.telling import ledger_rows
from components.health.telling.ledger import HEADS, cells
from components.layout import Layout
from flows.budget.estimate import Estimate
from flows.budget.telling import line, markdown
from flows.workspace import Workspace

ESTIMATE, VERDICT, LEDGER, REPORT = "run-estimate", "run-health", "run-ledger", "run-report"


def publish_estimate(workspace: Workspace, found: Estimate) -> None:
    """Show how long the run will take, and by what that is known."""
    text = markdown(workspace, found)
    create_markdown_artifact(text, key=ESTIMATE, description=f"Estimate for {workspace.run_id}")
    get_run_logger().info("%s", line(workspace, found))


def publish(layout: Layout, run_id: str) -> None:
    """Show what the run left; what is not there is not shown. Call it inside a flow run."""
    if layout.verdict.exists():
        create_markdown_artifact(read_text(layout.verdict), key=VERDICT, description=f"Health of {run_id}")
    if layout.ledger.exists():
        rows = [dict(zip(HEADS, cells(row), strict=True)) for row in ledger_rows(read_ledger(layout.ledger))]
        create_table_artifact(rows, key=LEDGER, description=f"{len(rows)} responses in {run_id}")
    if layout.report.exists():
        link = layout.report.resolve().as_uri()
        create_link_artifact(link, key=REPORT, link_text="report.html", description=f"Report of {run_id}")
