"""What the Prefect UI keeps of a run: the estimate before it; its health, the ledger of responses and the report after.

The keys are the same in every run, so that the UI has their history.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from threading import Thread

from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact, create_table_artifact

from components.files import read_text
from components.health.responses import read_ledger
from components.health.summaries import ledger_rows
from components.health.summaries.ledger import HEADS, cells
from flows.budget import display
from flows.budget.estimate import Estimate
from flows.run.workspace import Workspace
from flows.watching.report import markdown

ESTIMATE, VERDICT, LEDGER, REPORT = "run-estimate", "run-health", "run-ledger", "run-report"


def publish_estimate(workspace: Workspace, found: Estimate) -> None:
    """Show how long the run will take, and by what that is known. Call it inside a flow run."""
    text = display.markdown(workspace, found)
    create_markdown_artifact(text, key=ESTIMATE, description=f"Estimate for {workspace.run_id}")
    get_run_logger().info("%s", display.line(workspace, found))


def publish(workspace: Workspace, candidate: str | None, reason: str = "") -> None:
    """Publish the results of the run that exist. Call it inside a flow run.

    An artifact that cannot be created is logged and does not affect the run's outcome.

    Args:
        candidate: the digest of the proposed checkpoint.
        reason: why there is none.
    """
    _try(VERDICT, lambda: _health(workspace))
    _try(LEDGER, lambda: _ledger(workspace))
    _try(REPORT, lambda: _report(workspace, candidate, reason))


def load_plots() -> None:
    """Import what draws the report's plots, in a thread: it takes half a second, and the run waits for its stages."""
    Thread(target=importlib.import_module, args=["components.report.pictures"], name="plots", daemon=True).start()


def _try(key: str, show: Callable[[], None]) -> None:
    try:
        show()
    except Exception as error:  # of the server or of a file: neither changes what the run came to
        get_run_logger().warning("no artifact %s: %s: %s", key, type(error).__name__, error)


def _health(workspace: Workspace) -> None:
    path = workspace.layout.verdict
    if path.exists():
        create_markdown_artifact(read_text(path), key=VERDICT, description=f"Health of {workspace.run_id}")


def _ledger(workspace: Workspace) -> None:
    path = workspace.layout.ledger
    if path.exists():
        rows = [dict(zip(HEADS, cells(row), strict=True)) for row in ledger_rows(read_ledger(path))]
        create_table_artifact(rows, key=LEDGER, description=f"{len(rows)} responses in {workspace.run_id}")


def _report(workspace: Workspace, candidate: str | None, reason: str) -> None:
    text = markdown(workspace, candidate, reason)
    create_markdown_artifact(text, key=REPORT, description=f"Report of {workspace.run_id}")
