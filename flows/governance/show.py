"""The registry in the terminal: a decision, all decisions, one checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.printing import printable
from components.registry import Approval, History, NotApproved, PromotionRecord, Standing
from flows.display.output import field, plain_table, say
from flows.display.summary import gate_table
from flows.governance.checkpoint import CheckpointView
from flows.governance.commands import DecisionCommands
from flows.governance.decisions import Decision

STYLES = {"promoted": "green", "rolled back": "yellow", "rejected": "red", "superseded": "dim", "adopted": "cyan"}


def show_decision(console: Console, found: Decision, lines: DecisionCommands) -> None:
    """What came of a statement, and what comes next."""
    short = found.digest[:12]
    if found.record is None:
        _waiting(console, found, found.standing, lines)
        return
    record = found.record
    if found.stands_on is not None:
        _already(console, found, record, found.stands_on, lines)
        return
    console.print(Text.assemble((f"{record.outcome}  {short}", STYLES[record.outcome]), f"  record {record.number}"))
    rows = [("by", record.by), ("reason", record.reason), ("before it", (record.previous or "no champion")[:12])]
    if record.outcome == "superseded":
        rows.append(("because", "another became the champion meanwhile, and nothing was compared with that one"))
        rows.append(("go on", f"{lines.approve(short, doubtful=found.doubtful)}, which judges it again"))
    elif record.effective:
        rows.append(("go back", lines.rollback()))
    _grid(console, [*rows, *(("", line) for line in found.notes)])


def _already(
    console: Console, found: Decision, record: PromotionRecord, champion: PromotionRecord, lines: DecisionCommands
) -> None:
    """That nothing was done, and who is the champion."""
    console.print(Text.assemble((f"already decided  {found.digest[:12]}", "yellow"), f"  {printable(record.says)}"))
    to = found.digest if found.superseded else "DIGEST" if record.action == "rollback" else ""
    rows = [
        ("now", f"nothing was recorded; the champion is {champion.digest[:12]}, {champion.says}"),
        ("go back", lines.rollback(to)),
    ]
    _grid(console, [*rows, *(("", line) for line in found.notes)])


def _waiting(console: Console, found: Decision, standing: Standing | None, lines: DecisionCommands) -> None:
    if standing is None:
        return
    first, *others = standing.lines()
    console.print(Text.assemble((f"not yet   {found.digest[:12]}", "yellow"), f"  {printable(first)}"))
    approve = lines.approve(found.digest, doubtful=found.doubtful)
    how = lines.rollback(found.digest) if standing.question.action == "rollback" else approve
    who = "another person" if standing.missing == 1 else f"{standing.missing} other people"
    _grid(console, [*(("", line) for line in others), ("go on", f"{who}: {how}")])


def show_adoption(
    console: Console, found: PromotionRecord | NotApproved, distrusted: str, lines: DecisionCommands
) -> None:
    """What `distrusted_champion` says; then the record, or the missing approvals and the next command."""
    if distrusted:
        say(console, distrusted, style="bold red")
    if isinstance(found, NotApproved):
        say(console, found.what, style="yellow")
        _grid(console, [("go on", f"others who may: {lines.adopt()}")])
        return
    console.print(Text.assemble((f"adopted  {found.digest[:12]}", STYLES["adopted"]), f"  record {found.number}"))
    _grid(console, [("by", found.by), ("before it", found.policy_sha256[:12])])


def show_history(console: Console, history: History, problems: Mapping[int, str]) -> None:
    """A row a record, the present champion marked; and of each record in ``problems``, by its number, what is wrong."""
    if not history.records:
        console.print("nothing was decided yet")
        return
    columns = ("record", "when", "what", "checkpoint", "by", "reason")
    table = plain_table(*columns, right=["record"], no_wrap=["when", "checkpoint"])
    for record in history.records:
        at = record.number == history.base
        what = Text(record.outcome, STYLES[record.outcome])
        cells = [field(record.digest[:12], "bold" if at else ""), field(record.by), field(record.reason)]
        table.add_row(str(record.number), field(record.at[:16].replace("T", " ")), what, *cells)
    console.print(table)
    entry = history.champion
    texts = f"champion  {entry.digest[:12]} by record {entry.record}" if entry else "there is no champion yet"
    console.print(Text(texts, "bold"))
    wrong = (f"record {number} cannot be shown to be approved: {problem}" for number, problem in problems.items())
    say(console, *wrong, style="bold red")


def show_checkpoint(console: Console, found: CheckpointView, lines: DecisionCommands) -> None:
    """Print its origin, the gate's checks, the approvals, and the next commands."""
    candidate, run = found.candidate, found.candidate.run
    title = field(candidate.digest[:12], "bold")
    console.print(title.append(f"  {', '.join(found.names)}" if found.names else "", "green"))
    evidence = f"sha256:{candidate.evidence}" if candidate.evidence else "none is stored with it"
    rows = [("checkpoint", f"sha256:{candidate.digest}"), ("evidence", evidence)]
    rows += [(str(name).replace("_", " "), _text(value)) for name, value in run.items()]
    _grid(console, [*rows, ("state", found.state)])
    console.print(gate_table(found.checks))
    if found.approvals:
        console.print(_approvals(found.approvals))
    fixes = [(check["name"], check["how"]) for check in found.checks if check.get("how") and found.decision is None]
    _grid(console, [("fix", f"{name}: {how}") for name, how in fixes])
    _grid(console, [("go on", line) for line in _next(found, lines)])


def _approvals(found: list[tuple[Approval, str]]) -> Table:
    table = plain_table("by", "when", "signed", "counts", "reason")
    for one, why in found:
        said = one.statement
        counts = field(f"no: {why}", "yellow") if why else Text("yes", "green")
        signed = "yes" if one.signed else "no"
        table.add_row(field(said.by), field(said.at[:16].replace("T", " ")), signed, counts, field(said.reason))
    return table


def _next(found: CheckpointView, lines: DecisionCommands) -> list[str]:
    short = found.candidate.digest[:12]
    if "champion" in found.names:
        return [lines.rollback()]
    if found.decision is None:
        approve = [] if found.refused else [lines.approve(short, doubtful=found.result == "inconclusive")]
        return [lines.read(short), *approve, lines.reject(short)]
    if found.decision.effective:
        return [lines.rollback(short)]
    return ["nothing: it is decided"]


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _grid(console: Console, rows: Iterable[tuple[str, str]]) -> None:
    """A label and a text a line; nothing for an empty text."""
    say(console, *(f"{label:<10} {text}" for label, text in rows if text))
