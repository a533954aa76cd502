"""A run's report as Markdown: outcome, figures, checks, and a few embedded plots.

The page `out/report.html` contains more; this is the part that the Prefect UI can show without another server.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.errors import InputError
from components.files import read_json, read_text
from components.health.summaries.markdown import plain
from components.layout import Layout
from flows.display.output import markdown_table
from flows.display.summary import HEADS, compared
from flows.governance.commands import approval_of_run
from flows.run.workspace import Workspace
from flows.serving.pages import addresses

PLOTS = ("accuracy", "entropy", "zero_variance", "kl", "grad_norm")
"""Panels of the page, about 30 kB each."""


def markdown(workspace: Workspace, candidate: str | None, reason: str = "") -> str:
    """The text; parts of which the run left nothing are left out."""
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
    from components.report.pictures import pictures

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
