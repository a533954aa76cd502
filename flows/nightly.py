"""The flow `nightly`: what arrived since the last night joins, and a run follows unless nothing has changed.

`flows.nights` says what tonight's run is; the run itself is that of `post-training`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from pydantic import Field

from components.config import load
from flows.git import project_root
from flows.nights.ledger import Ended, Ledger
from flows.nights.plan import Night, Start, plan_night
from flows.nights.telling import markdown, told_after, told_before, told_nothing_new
from flows.parameters import AS_CONFIGURED, Config, Launcher, Limit, settings_of
from flows.post_training import Outcome, conduct
from flows.states import answer, told

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
    """
    project = project_root(Path.cwd())
    typed = [*settings_of(launcher=launcher, max_hours=max_hours, max_gpu_hours=max_gpu_hours), *overrides]
    with Ledger(project, load(Path(config), typed).name).held():
        night = plan_night(project, Path(config), incoming, start, typed, commit or None)
        lines = told_before(night)
        for line in lines:
            get_run_logger().info("%s", line)
        if night.answered and not fresh:
            return _unchanged(night, night.answered, lines)
        outcome = conduct(night.workspace, fresh=fresh)
        night.ledger.add(_ended(night, outcome))
    lines += told_after(night.workspace, outcome.candidate, outcome.reason)
    publish(night, lines)
    result = NightOutcome(outcome, False, lines)
    return result if outcome.candidate else answer(result, "NoCandidate", outcome.reason)


def _unchanged(night: Night, earlier: Ended, lines: list[str]) -> NightOutcome:
    """End at once with the answer of the night that was the same."""
    said = told_nothing_new(earlier)
    publish(night, [*lines, said])
    root = night.workspace.project / "runs" / earlier.run_id
    outcome = Outcome(earlier.run_id, str(root), earlier.candidate, earlier.reason)
    return answer(NightOutcome(outcome, True, [*lines, said]), "NothingNew", said)


def _ended(night: Night, outcome: Outcome) -> Ended:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    seen = len(night.ledger.seen()) if night.files else night.ledger.settled
    return Ended(outcome.run_id, night.key, night.champion, outcome.candidate, outcome.reason, seen, now)


def publish(night: Night, lines: list[str]) -> None:
    """Show the night in the Prefect UI."""
    text = markdown(f"Night of {night.workspace.settings.name}", lines)
    create_markdown_artifact(text, key=SUMMARY, description=f"Night of {night.workspace.run_id}")
