"""How long a run will take: from what its stages took before, from others scaled by work, or a rough guess."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rich.table import Table

from components.errors import InputError
from components.stages import wanted
from flows.budget.costs import shape_of, slowness
from flows.budget.history import Executed, history, result_keys, settings_keys
from flows.budget.spending import HOUR, close_killed_attempt, seconds_of, spent
from flows.budget.work import gpus_of, located, machinery, work_of
from flows.display.output import markdown_table
from flows.run.workspace import Workspace

Basis = Literal["unchanged", "same settings", "scaled", "rough guess"]
FIXED = 2.5
"""Seconds of any stage, whatever it does: DVC, Python and the imports."""
RECENT = 5
"""Earlier executions with the same settings that count."""
ALIKE = 0.05
"""Share by which an amount of work may differ: a file of prompts that grew by a little has not become other work."""
SPREAD = 1.5
"""Factor up and down around a single measurement: a busy machine is that much slower."""
SCALED = 2.0
"""The same for a time that is scaled by work; more the further it is scaled."""
ROUGH = 4.0
"""The same for a rough guess."""
GPU = 100.0
"""Times as fast as a thread of a CPU a GPU is taken to be. Not measured."""


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """What one stage will take, between ``low`` and ``high`` seconds, and where that is known from."""

    stage: str
    seconds: float
    low: float
    high: float
    gpus: int
    basis: Basis
    source: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """The rest of a run. ``before_hours`` and ``before_gpu_hours`` are already spent."""

    stages: list[StageEstimate]
    before_hours: float
    before_gpu_hours: float

    @property
    def seconds(self) -> float:
        return sum(stage.seconds for stage in self.stages)

    @property
    def low(self) -> float:
        return sum(stage.low for stage in self.stages)

    @property
    def high(self) -> float:
        return sum(stage.high for stage in self.stages)

    @property
    def gpu_hours(self) -> float:
        return sum(stage.seconds * stage.gpus for stage in self.stages) / HOUR

    def without_guesses(self) -> Estimate:
        """Only what is known from earlier executions."""
        return replace(self, stages=[stage for stage in self.stages if stage.basis != "rough guess"])

    def without(self, stages: Collection[str]) -> Estimate:
        """Knowing of these stages that nothing they depend on has changed."""
        known = [_unchanged(one.stage, one.gpus, "") if one.stage in stages else one for one in self.stages]
        return replace(self, stages=known)


def _unchanged(stage: str, gpus: int, source: str) -> StageEstimate:
    return StageEstimate(stage, 0.0, 0.0, 0.0, gpus, "unchanged", source)


def estimate(workspace: Workspace, *, fresh: bool = False) -> Estimate:
    """What is left of the run; of a ``fresh`` one all stages, with the account at zero. Nothing is executed."""
    rows, same, results = history(workspace.project), settings_keys(workspace), result_keys(workspace)
    stages = []
    for stage in wanted(workspace.settings):
        done = next((row for row in reversed(rows) if (row.stage, row.result) == (stage, results.get(stage))), None)
        if done and not fresh:
            stages.append(_unchanged(stage, gpus_of(workspace.settings, stage), done.run))
        else:
            found = _of_stage(workspace, stage, [row for row in rows if row.stage == stage], same.get(stage))
            stages.append(found if fresh else _remaining(workspace, found))
    if fresh or not workspace.root.exists():
        return Estimate(stages, 0.0, 0.0)
    taken = spent(workspace.layout)
    return Estimate(stages, taken.hours, taken.gpu_hours)


def _of_stage(workspace: Workspace, stage: str, rows: Sequence[Executed], key: str | None) -> StageEstimate:
    settings = located(workspace)
    work, kind, gpus = work_of(settings, stage), machinery(settings, stage), gpus_of(settings, stage)
    alike = [row for row in rows if row.executed and row.machinery == kind and row.unit == work.unit]
    exact = [
        row
        for row in alike
        if row.settings == key and abs(row.amount - work.amount) <= ALIKE * max(row.amount, work.amount)
    ][-RECENT:]
    if exact:
        times = [row.seconds for row in exact]
        mean = sum(times) / len(times)
        said = exact[-1].run if len(exact) == 1 else f"mean of {len(exact)} runs"
        return StageEstimate(stage, mean, min(times) / SPREAD, max(times) * SPREAD, gpus, "same settings", said)
    measured = [row for row in alike if row.amount > 0]
    if measured and work.amount > 0:
        nearest = min(reversed(measured), key=lambda row: abs(math.log(work.amount / row.amount)))
        ratio = work.amount / nearest.amount
        seconds = FIXED + work.start + max(0.0, nearest.seconds - FIXED - nearest.start) * ratio
        spread = SCALED * (1 + abs(math.log10(ratio)) / 2)
        said = f"{nearest.run} times {ratio:.3g}"
        return StageEstimate(stage, seconds, seconds / spread, seconds * spread, gpus, "scaled", said)
    if gpus:
        seconds = FIXED + work.start + work.seconds / (GPU * gpus)
    else:
        seconds = slowness(shape_of(settings)) * (FIXED + work.start + work.seconds)
    said = "by the cost of a token on this CPU" if not gpus else "assumed speed of a GPU, not measured"
    return StageEstimate(stage, seconds, seconds / ROUGH, seconds * ROUGH, gpus, "rough guess", said)


def _remaining(workspace: Workspace, found: StageEstimate) -> StageEstimate:
    """Minus the work of interrupted attempts: a stage continues from its last checkpoint."""
    done = seconds_of(workspace, found.stage, unfinished=True) if workspace.root.exists() else 0.0
    seconds, low, high = (max(FIXED, value - done) for value in (found.seconds, found.low, found.high))
    return replace(found, seconds=seconds, low=low, high=high) if done else found


def begin(workspace: Workspace, *, fresh: bool = False, wait: Callable[[str], None] | None = None) -> Estimate:
    """The estimate, checked against the run's budget. The account is read with the run's lock held.

    Args:
        fresh: as for `estimate`.
        wait: as for `Workspace.lock`.

    Raises:
        InputError: another process runs it, or what is known from earlier executions alone exceeds what is left of
            the budget.
    """
    with workspace.lock(wait):
        if workspace.root.exists() and not fresh:
            close_killed_attempt(workspace)
        found = estimate(workspace, fresh=fresh)
    if over := exceeded(workspace, found.without_guesses()):
        raise InputError(
            f"the run would take longer than its budget: {over}",
            where="budget",
            how="raise it (--set budget.hours=..., --set budget.gpu_hours=...), or ask for less work, such as fewer "
            "train.steps; --dry-run shows the estimate by stage",
        )
    return found


def exceeded(workspace: Workspace, found: Estimate) -> str:
    """Both numbers of every limit that the estimate exceeds; empty where there is none."""
    budget = workspace.settings.budget
    hours, gpu_hours = found.before_hours + found.seconds / HOUR, found.before_gpu_hours + found.gpu_hours
    figures = ((hours, budget.hours, "hours"), (gpu_hours, budget.gpu_hours, "GPU-hours"))
    over = [(value, limit, unit) for value, limit, unit in figures if limit is not None and value > limit]
    said = [f"{value:.3g} {unit} estimated, {limit:g} allowed" for value, limit, unit in over]
    spent_already = f" ({found.before_hours:.3g} hours are spent)" if said and found.before_hours else ""
    return " and ".join(said) + spent_already


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
