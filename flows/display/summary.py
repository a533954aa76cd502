"""A run in the terminal before it begins (`evenkeel run --dry-run`: which run it would be, what would be executed, and
what is not default), and the summary of a finished one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.config import Settings
from components.errors import InputError
from components.files import read_json, read_jsonl
from components.layout import Layout
from components.printing import message, printable
from components.registry import PromotionRecord
from components.stages import wanted
from flows.budget.estimate import Estimate, estimate, exceeded, line, table
from flows.display.output import field, plain_table, say
from flows.governance.commands import approval_of_run
from flows.recording import RecordingResult
from flows.run.stages import environment
from flows.run.workspace import Workspace

Leaf = tuple[str, Any]


def show_plan(console: Console, workspace: Workspace, *, fresh: bool = False) -> None:
    """Print the plan, with ``fresh`` that of a run that starts over. Nothing is executed and no workspace is made."""
    begun = "  (new)" if not workspace.root.exists() else "  (made again)" if fresh else ""
    facts = Table.grid(padding=(0, 2))
    facts.add_row("run", field(workspace.run_id))
    facts.add_row("workspace", field(f"{workspace.root}{begun}"))
    origin = "HEAD" if workspace.snapshot.clean else "a snapshot of the working tree"
    facts.add_row("commit", f"{workspace.snapshot.commit[:12]}  ({origin})")
    console.print(facts, highlight=False)
    found, states = _planned(workspace, fresh)
    console.print(table(found, states))
    say(console, *line(workspace, found).splitlines())
    say(console, *(f"  {key} = {json.dumps(value)}" for key, value in differences(workspace.settings)))


def _planned(workspace: Workspace, fresh: bool) -> tuple[Estimate, dict[str, str]]:
    """The estimate of what is left to do, and what would be done with each stage."""
    found = estimate(workspace, fresh=fresh)
    states = planned_states(workspace, found, fresh=fresh)
    return found.without([stage for stage, state in states.items() if state == "up to date"]), states


def plan_to_dict(workspace: Workspace, *, fresh: bool = False) -> dict[str, Any]:
    """The plan as JSON values. ``stages`` are those with something to do; seconds are estimates.
    ``refused`` says which limits of the budget are known to be exceeded, "" for none."""
    found, states = _planned(workspace, fresh)
    return {
        "run": workspace.run_id,
        "workspace": str(workspace.root),
        "commit": workspace.snapshot.commit,
        "clean": workspace.snapshot.clean,
        "states": states,
        "stages": [asdict(stage) for stage in found.stages],
        "seconds": found.seconds,
        "low": found.low,
        "high": found.high,
        "gpu_hours": found.gpu_hours,
        "refused": exceeded(workspace, found.without_guesses()),
        "settings": dict(differences(workspace.settings)),
    }


def planned_states(workspace: Workspace, found: Estimate, *, fresh: bool = False) -> dict[str, str]:
    """Stage -> what a run would do with it now; one that starts over executes all."""
    stages = wanted(workspace.settings)
    cached = {stage.stage for stage in found.stages if stage.basis == "unchanged"}
    executed = {stage: "cached" if stage in cached else "executed" for stage in stages}
    if fresh or not workspace.root.exists():
        return executed
    command, env = [sys.executable, "-m", "dvc", "status", "--json"], environment(workspace)
    done = subprocess.run(command, cwd=workspace.root, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"dvc status: {done.stderr.strip()}", where=workspace.root, how="`--fresh` creates it again")
    changed = json.loads(done.stdout)
    return {stage: executed[stage] if stage in changed else "up to date" for stage in stages}


def differences(settings: Settings) -> list[Leaf]:
    """Settings that are not the default of their section, in file order; rules are named by their file."""
    defaults = dict(leaves(Settings().model_dump(mode="json")))
    chosen = leaves(settings.model_dump(mode="json"))
    return [(k, v) for k, v in chosen if not k.startswith("health.rules.") and defaults.get(k, ...) != v]


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[Leaf]:
    """Dotted key and value of every setting."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


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
