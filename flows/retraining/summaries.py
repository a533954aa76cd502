"""Summaries of a nightly run: lines for the terminal, Markdown for the Prefect UI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.files import read_json
from components.health.summaries.markdown import plain
from components.layout import Layout
from components.words import percent, plural, points
from flows.display.board import Tail
from flows.retraining.ledger import FinishedRun, JoinedFile
from flows.retraining.plan import RetrainingPlan
from flows.run.workspace import Workspace

FILES_SHOWN = 20


def summary_before(plan: RetrainingPlan) -> list[str]:
    """What is known before the run: one line each."""
    lines = [
        f"{row.name}: {plural(row.rows, 'row')} joined{_replaced_version(plan, row)}"
        for row in plan.joined[:FILES_SHOWN]
    ]
    if len(plan.joined) > FILES_SHOWN:
        rest = plan.joined[FILES_SHOWN:]
        lines.append(f"{plural(len(rest), 'file')} more: {plural(sum(row.rows for row in rest), 'row')} joined")
    if not plan.joined:
        lines.append("no data joined")
    lines += [f"{one.name} {one.why}" for one in plan.skipped]
    compared = f", compared with the champion {plan.champion[:12]}" if plan.champion else ""
    return [*lines, *plan.remarks, f"starts from {plan.start}{compared}"]


def _replaced_version(plan: RetrainingPlan, row: JoinedFile) -> str:
    before = {one.sha256: one for one in plan.ledger.seen()}
    if row.replaces not in before:
        return ""
    earlier = before[row.replaces]
    known_as = "" if earlier.name == row.name else f", {earlier.name},"
    return f", in place of an earlier version{known_as} of {plural(earlier.rows, 'row')}"


def unchanged_summary(plan: RetrainingPlan, earlier: FinishedRun) -> str:
    """Why there is nothing to do."""
    promoted = ", the champion by now" if plan.promoted(earlier) else ""
    answer = f"candidate {earlier.candidate[:12]}{promoted}" if earlier.candidate else "no candidate"
    return f"nothing new since {earlier.at}: run {earlier.run_id} had the same data, settings and code ({answer})"


def summary_after(workspace: Workspace, candidate: str | None, reason: str) -> list[str]:
    """What was executed, how the result compares with the champion, and the answer."""
    states = {event["stage"]: event["state"] for event in Tail(workspace.progress).read() if "state" in event}
    by_state: dict[str, list[str]] = {}
    for stage, state in states.items():
        by_state.setdefault(state, []).append(stage)
    words = {"done": "executed", "cached": "unchanged"}
    lines = [f"{words.get(state, state)}: {', '.join(stages)}" for state, stages in by_state.items()]
    if compared := against_champion(workspace.layout):
        lines.append(compared)
    return [*lines, f"candidate {candidate}" if candidate else f"no candidate: {reason}"]


def against_champion(layout: Layout) -> str:
    """The gain over the champion in one line; empty where nothing was compared."""
    evaluation: Mapping[str, Any] = read_json(layout.evaluation) if layout.evaluation.exists() else {}
    if "champion" not in evaluation:
        return ""
    sides = [percent(evaluation[side]["pass_at_1"]) for side in ("champion", "trained")]
    gain = evaluation["gain_over_champion"]
    if gain is None:
        return "the champion could not be compared with: no prompt was scorable under both"
    interval = f"95 % interval {points(gain['low'])} to {points(gain['high'])}"
    return f"pass@1 {sides[1]} against the champion's {sides[0]}: {points(gain['mean'])} points, {interval}"


def markdown(title: str, lines: list[str]) -> str:
    """A heading and a list; what files are called and what a stage said is shown as it is."""
    return "\n".join([f"# {title}", "", *(f"- {plain(line)}" for line in lines), ""])
