"""What the Prefect UI keeps of a run: the estimate before it; its health, the ledger of responses and the report after.

The keys are the same in every run, so that the UI has their history.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
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
    """Publish the results of the run that exist: with the digest of its candidate, or the reason why there is none.
    Call it inside a flow run.

    An artifact that cannot be created is logged and does not affect the run's outcome.
    """
    run_id, verdict, ledger = workspace.run_id, workspace.layout.verdict, workspace.layout.ledger
    with _failures_logged(VERDICT):
        if verdict.exists():
            create_markdown_artifact(read_text(verdict), key=VERDICT, description=f"Health of {run_id}")
    with _failures_logged(LEDGER):
        if ledger.exists():
            rows = [dict(zip(HEADS, cells(row), strict=True)) for row in ledger_rows(read_ledger(ledger))]
            create_table_artifact(rows, key=LEDGER, description=f"{len(rows)} responses in {run_id}")
    with _failures_logged(REPORT):
        text = markdown(workspace, candidate, reason)
        create_markdown_artifact(text, key=REPORT, description=f"Report of {run_id}")


def load_plots() -> None:
    """Import what draws the report's plots, in a thread: it takes half a second, and the run waits for its stages."""
    Thread(target=importlib.import_module, args=["components.report.pictures"], name="plots", daemon=True).start()


@contextmanager
def _failures_logged(key: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # of the server or of a file: neither changes what the run came to
        get_run_logger().warning("no artifact %s: %s: %s", key, type(error).__name__, error)
