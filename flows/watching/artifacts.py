"""What the Prefect UI keeps of a run: the estimate before it; its health, the ledger of responses and the report after.

The keys are the same in every run, so that the UI has their history.
"""

from __future__ import annotations

import base64
import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any

from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact, create_table_artifact

from components.errors import InputError
from components.files import read_json, read_text
from components.health.responses import read_ledger
from components.health.summaries import ledger_rows, phrases
from components.health.summaries.markdown import plain
from components.layout import Layout
from flows.budget import estimate
from flows.display.output import markdown_table
from flows.display.summary import HEADS, compared
from flows.governance.commands import approval_of_run
from flows.run.workspace import Workspace
from flows.serving.pages import addresses

ESTIMATE, VERDICT, LEDGER, REPORT = "run-estimate", "run-health", "run-ledger", "run-report"


def publish_estimate(workspace: Workspace, found: estimate.Estimate) -> None:
    """Show how long the run will take, and by what that is known. Call it inside a flow run."""
    text = estimate.markdown(workspace, found)
    create_markdown_artifact(text, key=ESTIMATE, description=f"Estimate for {workspace.run_id}")
    get_run_logger().info("%s", estimate.line(workspace, found))


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
            rows = [
                dict(zip(phrases.HEADS, phrases.cells(row), strict=True)) for row in ledger_rows(read_ledger(ledger))
            ]
            create_table_artifact(rows, key=LEDGER, description=f"{len(rows)} responses in {run_id}")
    with _failures_logged(REPORT):
        text = markdown(workspace, candidate, reason)
        create_markdown_artifact(text, key=REPORT, description=f"Report of {run_id}")


def load_plots() -> None:
    """Import what draws the report's plots, in a thread: it takes half a second, and the run waits for its stages."""
    Thread(target=importlib.import_module, args=["components.report.plots"], name="plots", daemon=True).start()


@contextmanager
def _failures_logged(key: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # of the server or of a file: neither changes what the run came to
        get_run_logger().warning("no artifact %s: %s: %s", key, type(error).__name__, error)


PLOTS = ("accuracy", "entropy", "zero_variance", "kl", "grad_norm")
"""Panels of the page, about 30 kB each."""


def markdown(workspace: Workspace, candidate: str | None, reason: str = "") -> str:
    """The report as Markdown: outcome, figures, checks, and a few plots, without what the run left nothing of.

    The page `out/report.html` contains more; this is the part that the Prefect UI can show without another server.
    """
    parts = [*_answer(workspace, candidate, reason), *_figures(workspace.layout), *_plots(workspace)]
    return "\n\n".join(parts) + "\n"


def _answer(workspace: Workspace, candidate: str | None, reason: str) -> Iterator[str]:
    """What the run came to, the headline of its health, and the pages that it has written."""
    run_id, layout = workspace.run_id, workspace.layout
    if candidate is None:
        yield f"# {run_id}: no candidate"
        yield "\n".join(f"> {plain(line)}  " for line in reason.splitlines()) or "> no reason was given"
    else:
        yield f"# {run_id}: a candidate"
        yield f"Checkpoint `sha256:{candidate}`. To decide: `{approval_of_run(workspace.project, run_id, candidate)}`."
    if layout.verdict.exists():
        bold = (line for line in read_text(layout.verdict).splitlines() if line.startswith("**"))
        yield next(bold, "")
    if pages := addresses(layout, f"runs/{run_id}"):
        yield " | ".join(f"[{title}]({url})" for title, url in pages.items())


def _figures(layout: Layout) -> Iterator[str]:
    """Before and after RL on held-out prompts, compared with the champion where there is one; and the gate's checks."""
    if layout.evaluation.exists():
        found = read_json(layout.evaluation)
        yield "## Held-out test prompts"
        for side in filter(found.__contains__, HEADS):
            yield markdown_table(("", HEADS[side], "trained", "gain"), compared(found, side))
    if layout.gate.exists():
        checks: Sequence[Mapping[str, Any]] = read_json(layout.gate)["checks"]
        yield "## Gate"
        yield markdown_table(("check", "result", "evidence"), [(c["name"], c["result"], c["evidence"]) for c in checks])


def _plots(workspace: Workspace) -> Iterator[str]:
    """Pictures inside the text, so that they show wherever the text does."""
    if not workspace.layout.records.exists():
        return
    from components.report import load_run  # draws, and a run has to begin within seconds
    from components.report.plots import pictures

    try:
        found = load_run(workspace.settings, workspace.layout)
    except InputError as error:
        yield f"No plots: {plain(error.what)}"
        return
    drawn = pictures(found, PLOTS)
    if drawn:
        yield "## Training"
    for one in drawn:
        data = base64.b64encode(one.png).decode()
        yield f"**{one.title}**"
        yield f"![{plain(one.description)}](data:image/png;base64,{data})"
