"""The flow `nightly`: what arrived since the last night joins, and a run follows unless nothing has changed.

`flows.retraining` says what tonight's run is; the run itself is that of `post-training`.
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
from flows.post_training import Outcome, conduct
from flows.prefect_runtime.states import answer, told
from flows.retraining.ledger import Begun, Ended, Ledger
from flows.retraining.plan import Night, Start, plan_night
from flows.retraining.summaries import markdown, told_after, told_before, told_nothing_new
from flows.run.parameters import AS_CONFIGURED, Config, Launcher, Limit, settings_of
from flows.run.resumption import begun_by, reopen
from flows.run.workspace import Workspace

SUMMARY = "nightly"
Folder = Annotated[str, Field(description="Folder of JSON-lines files.")]


@dataclass(frozen=True, slots=True)
class NightOutcome:
    """What the night's run came to, or the run that gave the same answer before; and the night in a line each."""

    outcome: Outcome
    nothing_new: bool
    lines: list[str]


@flow(name="nightly")
@told
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
) -> NightOutcome:
    """Train on all data there are by now, and compare the result with the champion.

    Args:
        config: What to run; a file of the project whose source is a JSON-lines file.
        incoming: Folder of JSON-lines files with the columns of that source; those that are new join. Empty: no folder.
        start: The configuration's own start, or the champion without another supervised stage.
        launcher: Where the training stage runs.
        overrides: Any other settings, each as section.name=value; `evenkeel params` prints all there are.
        max_hours: The run is stopped when it has worked this long, retries included; it can be continued. 0: no limit.
        max_gpu_hours: The same, times the GPUs that it works with.
        commit: The recorded code to run; the present working tree when empty.
        fresh: Begin anew and execute every stage, whatever is already known.
        now: When the night began, in seconds since the epoch; files written later wait for the next. 0: it begins now.
    """
    project = project_root(Path.cwd())
    typed = [*settings_of(launcher=launcher, max_hours=max_hours, max_gpu_hours=max_gpu_hours), *overrides]
    ledger = Ledger(project, load(Path(config), typed).name)
    with ledger.held():
        begun = ledger.begun(begun_by(project, flow_run.get_id()))
        if begun:  # by an earlier attempt of this flow run: what has arrived since is for the next night
            workspace, fresh = reopen(project, begun.run_id), False
        else:
            night = plan_night(project, Path(config), incoming, start, typed, commit or None, now or None)
            if night.answered and not fresh:
                return _unchanged(night, night.answered)
            workspace, begun = night.workspace, begins(night)
            check_run(located(workspace), wanted(workspace.settings))
            ledger.add(begun)
        say(begun.lines)
        outcome = conduct(workspace, fresh=fresh)
        ledger.add(begun.ended(outcome.candidate, outcome.reason))
    lines = [*begun.lines, *told_after(workspace, outcome.candidate, outcome.reason)]
    publish(workspace, lines)
    result = NightOutcome(outcome, False, lines)
    return result if outcome.candidate else answer(result, "NoCandidate", outcome.reason)


def _unchanged(night: Night, earlier: Ended) -> NightOutcome:
    """End at once with the answer of the night that was the same."""
    lines, said = told_before(night), told_nothing_new(night, earlier)
    say(lines)
    publish(night.workspace, [*lines, said])
    root = night.workspace.project / "runs" / earlier.run_id
    outcome = Outcome(earlier.run_id, str(root), earlier.candidate, earlier.reason)
    return answer(NightOutcome(outcome, True, [*lines, said]), "NothingNew", said)


def begins(night: Night) -> Begun:
    """What is noted of a night before its run."""
    seen = len(night.ledger.seen()) if night.files else night.ledger.settled
    return Begun(night.workspace.run_id, night.key, night.champion, seen, told_before(night))


def say(lines: list[str]) -> None:
    """Log what is known before the run."""
    for line in lines:
        get_run_logger().info("%s", line)


def publish(workspace: Workspace, lines: list[str]) -> None:
    """Show the night in the Prefect UI."""
    text = markdown(f"Night of {workspace.settings.name}", lines)
    create_markdown_artifact(text, key=SUMMARY, description=f"Night of {workspace.run_id}")
