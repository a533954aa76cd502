"""The summary of a finished run in the terminal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.files import read_json, read_jsonl
from components.layout import Layout
from components.printing import message, printable
from components.registry import PromotionRecord
from flows.display.output import field, plain_table, say
from flows.governance.commands import approval_of_run
from flows.recording import RecordingResult
from flows.run.workspace import Workspace

HEADS = {"sft": "SFT", "champion": "champion"}
"""What the trained policy may be compared with, by its key in the evaluation."""
RESULT_STYLES = {"pass": "green", "fail": "red", "inconclusive": "yellow"}


def show_figures(console: Console, layout: Layout) -> None:
    """Held-out accuracy before and after RL, what the monitor said, and the gate's checks."""
    if layout.evaluation.exists():
        evaluation = read_json(layout.evaluation)
        for side, title in (("sft", "held-out test prompts"), ("champion", "against the champion")):
            if side in evaluation:
                table = Table(title, HEADS[side], "trained", "gain")
                for row in compared(evaluation, side):
                    table.add_row(*row)
                console.print(table)
        say(console, *evaluation.get("words", ()))
    if layout.train_metrics.exists():
        console.print(_health_line(layout))
    if layout.gate.exists():
        console.print(gate_table(read_json(layout.gate)["checks"]))


def show_audit(console: Console, layout: Layout) -> None:
    """What the verifier made of every sort of answer, how long it took, and the page."""
    audit = read_json(layout.audit)
    console.print(_audit_table(audit))
    facts = Table.grid(padding=(0, 2))
    for label, key in (("a wrong answer accepted", "false_positive"), ("a right answer refused", "false_negative")):
        share = audit[key]
        bounds = f"95 % interval {share['low']:.2%} to {share['high']:.2%}"
        facts.add_row(label, f"{share['count']} of {share['n']} prompts, {share['rate']:.2%}; {bounds}")
    facts.add_row("judged again", f"{audit['repeated']}, {audit['unstable']} differently")
    if layout.audit_timing.exists():  # not where the stage was taken from the cache
        median, slowest, together = (read_json(layout.audit_timing)[key] for key in ("median", "slowest", "per_second"))
        each = f"{1000 * median:.1f} ms an answer, the slowest {1000 * slowest:.1f} ms"
        facts.add_row("time", f"{each}; {together:,.0f} a second in a batch")
    facts.add_row("page", field(layout.audit_page))
    console.print(facts, highlight=False, soft_wrap=True)
    console.print(Text(f"verdict {audit['verdict']}", RESULT_STYLES[audit["verdict"]]))
    say(console, *(f"  - {reason}" for reason in audit["reasons"]))
    say(console, *(f"  - noted: {remark}" for remark in audit["remarks"]))


def show_candidate(console: Console, workspace: Workspace, digest: str, decided: PromotionRecord | None) -> None:
    """The candidate and the one command that approves it, or what was decided about it before."""
    report = workspace.layout.report
    state = decided.says if decided else "awaiting approval"
    lines = [f"report     {report}", f"candidate  sha256:{digest}", f"state      {state}"]
    if decided is None:
        lines.append(f"approve    {_here(approval_of_run(workspace.project, workspace.run_id, digest))}")
    say(console, *lines)


def _here(command: str) -> str:
    """The same by the program's place below the present folder, runnable without an activated environment."""
    program = Path(sys.executable).with_name("evenkeel")
    if not program.is_relative_to(Path.cwd()):
        return command
    return f"{program.relative_to(Path.cwd())}{command.removeprefix('evenkeel')}"


def show_recording(console: Console, kept: RecordingResult | None) -> None:
    """The run's branch, what was pushed where, and what went wrong with that."""
    if kept is None:
        text = "problem    the run is not recorded, its disk may be full; `evenkeel run --resume` makes up for it"
        say(console, text, style="yellow")
        return
    lines = [f"recorded   branch {kept.branch}, commit {kept.commit[:12]}"] if kept.commit else []
    lines += [f"pushed     outputs to the DVC remote {kept.dvc_remote}"] if kept.dvc_remote else []
    lines += [f"pushed     the branch to {kept.git_remote}"] if kept.git_remote else []
    say(console, *lines, *(f"note       {note}" for note in kept.notes))
    say(console, *(f"problem    {problem}" for problem in kept.problems), style="yellow")


def show_refusal(console: Console, reason: str, report: Path) -> None:
    """Why there is no candidate."""
    if report.exists():
        say(console, f"report     {report}")
    console.print(Text("no candidate", "bold yellow"))
    console.print(Text(message(reason)), soft_wrap=True)


def _audit_table(audit: dict[str, Any]) -> Table:
    """A row per sort of answer: judged wrongly, the 95 % interval of that in per cent, and where the second differs."""
    second = any(kind["disagree"] is not None for kind in audit["kinds"])
    figures = ("probes", "wrong", "95 %", "unscored", *(["differ"] if second else []))
    table = plain_table("answers", *figures, right=figures, no_wrap=("answers", *figures))
    for must in ("accepted", "refused"):
        table.add_row(Text(f"must be {must}", "bold"))
        for kind in audit["kinds"]:
            if kind["must_be"] == must:
                wrong, interval = kind["judged_wrongly"], f"{100 * kind['low']:.1f}-{100 * kind['high']:.1f}"
                cells = [kind["probes"], wrong, interval, kind["unscorable"], *([kind["disagree"]] if second else [])]
                table.add_row(f"  {kind['kind']}", *map(str, cells), style="yellow" if wrong else None)
    return table


def _health_line(layout: Layout) -> Text:
    train = read_json(layout.train_metrics)
    levels = Counter(row["level"] for row in read_jsonl(layout.train / "verdicts.jsonl"))
    said = ", ".join(f"{count} {level}" for level, count in sorted(levels.items()) if level != "pass") or "no warning"
    if train["outcome"] == "adopted":
        return Text(f"training   by {train['trainer']}; the log of {train['steps']} steps gives {said}")
    stopped = f" by {train['stopped_by']}" if train["stopped_by"] else ""
    return Text(f"training   {train['outcome']}{stopped} after {train['steps']} steps; the monitor gave {said}")


def gate_table(checks: Sequence[Mapping[str, Any]]) -> Table:
    """A row a check of the gate."""
    table = Table("gate", "result", "evidence")
    for check in checks:
        evidence = field(check["evidence"])
        if check.get("how"):
            evidence.append(f"\nto change that: {printable(check['how'])}", "dim")
        result = field(check["result"], RESULT_STYLES.get(check["result"], ""))
        table.add_row(field(check["name"]), result, evidence)
    return table


def compared(evaluation: Mapping[str, Any], side: str) -> list[tuple[str, str, str, str]]:
    """A row a measure: its name, that of ``side``, that of the trained policy, and the gain with its interval."""
    over = "" if side == "sft" else f"_over_{side}"
    measures = (("pass@1", "pass_at_1", "gain"), ("greedy", "greedy", "greedy_gain"))
    rows = []
    for label, key, gain in measures:
        before, after = (_share(evaluation[policy][key]) for policy in (side, "trained"))
        rows.append((label, before, after, _interval(evaluation[f"{gain}{over}"])))
    return rows


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"  # None: nothing could be scored


def _interval(gain: Mapping[str, float] | None) -> str:
    if gain is None:
        return "-"
    mean, low, high = (100 * gain[key] for key in ("mean", "low", "high"))
    return f"{mean:+.1f} points ({gain['confidence']:.0%} interval {low:+.1f} to {high:+.1f})"
