"""The flow `nightly`: new data joins the training data, and a run follows unless nothing has changed.

`flows.retraining` plans the run; the run itself is that of `post-training`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.runtime import flow_run
from pydantic import Field

from components.config import load
from components.planning.least import check_run
from components.stages import wanted
from flows.budget.work import located
from flows.host.git import project_root
from flows.post_training import run_workspace
from flows.prefect_runtime.states import completed_as, expected_failures
from flows.retraining.ledger import FinishedRun, Ledger, StartedRun
from flows.retraining.plan import (
    RetrainingPlan,
    Start,
    markdown,
    plan_retraining,
    summary_after,
    summary_before,
    unchanged_summary,
)
from flows.run.parameters import AS_CONFIGURED, Config, Launcher, Limit, settings_of
from flows.run.resumption import reopen, run_of_flow_run
from flows.run.workspace import Outcome, Workspace

SUMMARY = "nightly"
Folder = Annotated[str, Field(description="Folder of JSON-lines files.")]


@dataclass(frozen=True, slots=True)
class RetrainingOutcome:
    """The outcome of the run, or of the earlier run with the same inputs; and a summary, line by line."""

    outcome: Outcome
    nothing_new: bool
    lines: list[str]


@flow(name="nightly")
@expected_failures
def nightly(
    config: Config = "configs/nightly.yaml",
    incoming: Folder = "",
    start: Start = "base",
    launcher: Launcher = AS_CONFIGURED,
    overrides: Sequence[str] = (),
    max_hours: Limit = 0,
    max_gpu_hours: Limit = 0,
    commit: str = "",
    fresh: bool = False,
    now: float = 0,
) -> RetrainingOutcome:
    """Train on all data there are by now, and compare the result with the champion.

    Args:
        config: What to run; a file of the project whose source is a JSON-lines file.
        incoming: Folder of JSON-lines files with the columns of that source; those that are new join. Empty: no folder.
        start: The configuration's own start, or the champion without another supervised stage.
        launcher: Where the training stage runs.
        overrides: Any other settings, each as section.name=value; `evenkeel params` prints all there are.
        max_hours: Hours of work, retries included, that stop the run; it can be continued. 0: as configured.
        max_gpu_hours: The same, times the GPUs that it works with.
        commit: The recorded code to run; the present working tree when empty.
        fresh: Start over and execute every stage, ignoring the cache.
        now: When the night began, in seconds since the epoch; files written later wait for the next. 0: it begins now.
    """
    project = project_root(Path.cwd())
    typed = [*settings_of(launcher=launcher, max_hours=max_hours, max_gpu_hours=max_gpu_hours), *overrides]
    ledger = Ledger(project, load(Path(config), typed).name)
    with ledger.held():
        begun = ledger.started_runs().get(run_of_flow_run(project, flow_run.get_id()))
        if begun:  # by an earlier attempt of this flow run: later files wait for the next run
            workspace, fresh = reopen(project, begun.run_id), False
        else:
            plan = plan_retraining(project, Path(config), incoming, start, typed, commit or None, now or None)
            if plan.previous and not fresh:
                return _unchanged(plan, plan.previous)
            workspace, begun = plan.workspace, start_row(plan)
            check_run(located(workspace), wanted(workspace.settings))
            ledger.add(begun)
        say(begun.lines)
        outcome = run_workspace(workspace, fresh=fresh)
        ledger.add(begun.ended(outcome.candidate, outcome.reason))
    lines = [*begun.lines, *summary_after(workspace, outcome.candidate, outcome.reason)]
    publish(workspace, lines)
    result = RetrainingOutcome(outcome, False, lines)
    return result if outcome.candidate else completed_as(result, "NoCandidate", outcome.reason)


def _unchanged(plan: RetrainingPlan, earlier: FinishedRun) -> RetrainingOutcome:
    """End at once with the outcome of the earlier run with the same inputs."""
    lines, said = summary_before(plan), unchanged_summary(plan, earlier)
    say(lines)
    publish(plan.workspace, [*lines, said])
    root = plan.workspace.project / "runs" / earlier.run_id
    outcome = Outcome(earlier.run_id, str(root), earlier.candidate, earlier.reason)
    return completed_as(RetrainingOutcome(outcome, True, [*lines, said]), "NothingNew", said)


def start_row(plan: RetrainingPlan) -> StartedRun:
    """The ledger's row of a run that starts."""
    joining = plan.ledger.unsettled() if plan.files else []
    return StartedRun(plan.workspace.run_id, plan.key, plan.champion, summary_before(plan), joining)


def say(lines: list[str]) -> None:
    """Log what is known before the run."""
    for line in lines:
        get_run_logger().info("%s", line)


def publish(workspace: Workspace, lines: list[str]) -> None:
    """Show the summary in the Prefect UI."""
    text = markdown(f"Night of {workspace.settings.name}", lines)
    create_markdown_artifact(text, key=SUMMARY, description=f"Night of {workspace.run_id}")
