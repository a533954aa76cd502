"""An estimate as a line, a table, or Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rich.table import Table

from flows.budget.estimate import Estimate, StageEstimate, exceeded
from flows.budget.spending import HOUR
from flows.display.output import markdown_table
from flows.run.workspace import Workspace


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, as precise as an estimate is."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 1.5 * HOUR else f"{seconds / HOUR:.1f} h"


def interval(low: float, high: float) -> str:
    """From where to where."""
    return f"{duration(low)} to {duration(high)}"


def line(workspace: Workspace, found: Estimate) -> str:
    """How long it will take, in one sentence, and whether the budget is exceeded: as is known, or by a rough guess."""
    bases = Counter(stage.basis for stage in found.stages)
    if bases["unchanged"] == len(found.stages):
        return "estimate   nothing to do: every stage is unchanged"
    gpu = f", {found.gpu_hours:.2g} GPU-hours" if found.gpu_hours else ""
    known = ", ".join(f"{count} {basis}" for basis, count in bases.items())
    said = f"estimate   {duration(found.seconds)} ({interval(found.low, found.high)}){gpu}; stages: {known}"
    if known_over := exceeded(workspace, found.without_guesses()):
        said += f"\nestimate   exceeds the budget: {known_over}; a run is refused until the budget is raised"
    elif over := exceeded(workspace, found):
        said += f"\nestimate   may exceed the budget, by a rough guess: {over}; the run is stopped when it does"
    return said


def table(found: Estimate, states: Mapping[str, str]) -> Table:
    """A row per stage and one for all of them; ``states`` is what a run would do with each stage."""
    with_gpus = any(stage.gpus for stage in found.stages)
    columns = ["stage", "would be", "about", "between", *(["GPU-hours"] if with_gpus else []), "known from"]
    shown = Table(*columns)
    for stage in found.stages:
        gpu = [f"{stage.seconds * stage.gpus / HOUR:.2g}"] if with_gpus else []
        times = ["", ""] if stage.basis == "unchanged" else [duration(stage.seconds), interval(stage.low, stage.high)]
        shown.add_row(stage.stage, states[stage.stage], *times, *gpu, known_from(stage))
    gpu = [f"{found.gpu_hours:.2g}"] if with_gpus else []
    shown.add_section()
    shown.add_row("all", "", duration(found.seconds), interval(found.low, found.high), *gpu, "", style="bold")
    return shown


def known_from(stage: StageEstimate) -> str:
    """Basis and source in a few words."""
    return ": ".join(filter(None, (stage.basis, stage.source)))


def markdown(workspace: Workspace, found: Estimate) -> str:
    """The same for the Prefect UI."""
    rows = [
        (s.stage, duration(s.seconds), interval(s.low, s.high), f"{s.seconds * s.gpus / HOUR:.2g}", known_from(s))
        for s in found.stages
    ]
    budget = workspace.settings.budget
    limits = [(budget.hours, "hours"), (budget.gpu_hours, "GPU-hours")]
    limit = " and ".join(f"{value:g} {unit}" for value, unit in limits if value is not None) or "none"
    parts = (
        f"# Estimate for {workspace.run_id}",
        line(workspace, found).replace("estimate   ", ""),
        markdown_table(("stage", "about", "between", "GPU-hours", "known from"), rows),
        f"Budget: {limit}; spent so far: {found.before_hours:.2g} hours, {found.before_gpu_hours:.2g} GPU-hours.\n",
    )
    return "\n\n".join(parts)
