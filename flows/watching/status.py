"""`evenkeel status`: the runs of a project in a table, or one of them with all that is known of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.errors import InputError
from components.printing import message
from components.working import clock
from flows.display.console import STYLES as STAGE_STYLES
from flows.display.console import StageView
from flows.display.output import field, plain_table, say
from flows.display.summary import differences
from flows.governance.commands import approval_of_run
from flows.watching.runs import RunView

STYLES = {
    "running": "cyan",
    "candidate": "green",
    "approved": "bold green",
    "done": "green",
    "refused": "yellow",
    "rejected": "yellow",
    "stopped": "yellow",
    "failed": "red",
    "dead": "red",
}
UNDER_WAY = ("running", "stopped", "failed", "dead")
"""States in which it matters how far a run is."""
COMMAND = 60
"""Characters of a process's command that are shown."""


def show_runs(console: Console, runs: Sequence[RunView]) -> None:
    """A row a run."""
    if not runs:
        console.print("no run yet; `evenkeel run` makes one", highlight=False)
        return
    columns = {
        "run": [field(run.run_id) for run in runs],
        "state": [field(run.state, STYLES.get(run.state, "dim")) for run in runs],
        "stage": [field(where(run.stage) if run.state in UNDER_WAY else "") for run in runs],
        "began": [field(local(run)) for run in runs],
        "took": [field("" if run.took is None else clock(run.took)) for run in runs],
        "candidate": [field((run.execution.candidate or "")[:12] if run.execution else "") for run in runs],
        "says": [field(run.status_line) for run in runs],
    }
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    table = plain_table(*shown, right=["took"], no_wrap=[name for name in shown if name != "says"])
    for row in zip(*shown.values(), strict=True):
        table.add_row(*row)
    console.print(table)


def where(stage: StageView | None) -> str:
    """A stage and how far it is."""
    if stage is None:
        return ""
    return f"{stage.name} {stage.done}/{stage.total}" if stage.total else stage.name


def local(run: RunView) -> str:
    """When it began, in this machine's time zone."""
    return run.began.astimezone().strftime("%Y-%m-%d %H:%M") if run.began else ""


def to_dict(run: RunView) -> dict[str, Any]:
    """One run with its stages, settings and processes, as JSON values."""
    figures = ("state", "seconds", "done", "total")
    return {
        **run.to_dict(),
        "stages": [{"stage": one.name, **{name: getattr(one, name) for name in figures}} for one in run.stages],
        "settings": dict(differences(run.settings)) if run.settings else None,
        "processes": [one.pid for one in run.processes()],
        "logs": {path.stem: str(path) for path in sorted(run.layout.logs.glob("*.log"))},
        "next": advice(run),
    }


def show_run(console: Console, run: RunView) -> None:
    """All that is known of one run, and what to do next."""
    for label, text in _facts(run):
        console.print(f"{label:<10}", text, highlight=False, soft_wrap=True)
    console.print(_stages(run))
    if run.settings is not None:
        say(console, *(f"  {key} = {json.dumps(value)}" for key, value in differences(run.settings)))
    _processes(console, run.processes())
    say(console, f"next: {advice(run)}", style="bold")


def _facts(run: RunView) -> list[tuple[str, Text]]:
    execution = run.execution
    facts = [("run", field(run.run_id)), ("state", field(run.state, STYLES.get(run.state, "dim")))]
    if execution is None:
        nothing = field("no flow has recorded that it ran this workspace")
        return [*facts, ("", nothing), ("workspace", field(run.root))]
    request = execution.request
    arguments = " ".join([request.config, *(f"--set {one}" for one in request.overrides)])
    took = f", {clock(run.took)}" if run.took is not None else ""
    of_ui = f"{execution.api.removesuffix('/api')}/runs/flow-run" if execution.api else ""
    facts += [
        ("flow", field(f"{execution.flow}  {arguments}".rstrip())),
        ("commit", field(execution.commit[:12])),
        ("began", field(f"{local(run)}{took}")),
        ("workspace", field(run.root)),
        ("flow run", field(f"{of_ui}/{execution.flow_run}" if of_ui and execution.flow_run else "")),
        ("machine", field("" if execution.here else f"{execution.host}, where its process can be seen")),
        ("candidate", field(f"sha256:{execution.candidate}" if execution.candidate else "")),
        ("report", field(run.layout.report if run.layout.report.exists() else "")),
        ("reason", Text(message(execution.reason))),
        ("health", field(run.headline)),
    ]
    return [(label, text) for label, text in facts if text]


def _stages(run: RunView) -> Table:
    columns = ("stage", "state", "took", "progress", "log")
    table = plain_table(*columns, right=["took"], no_wrap=columns)
    for view in run.stages:
        running = view.state == "running" and run.running
        state = "interrupted" if view.state == "running" and not run.running else view.state
        log = run.log(view.name)
        amount = f"{view.done}/{view.total}" if view.total else ""
        table.add_row(
            field(view.name),
            field(state, STAGE_STYLES.get(state, "red")),
            clock(view.seconds) if view.seconds else "",
            field("  ".join(filter(None, (amount, view.work if running else "")))),
            field(log.relative_to(run.root) if log.exists() else ""),
        )
    return table


def _processes(console: Console, processes: Sequence[psutil.Process]) -> None:
    if not processes:
        return
    figures = ("process", "memory")
    table = plain_table(*figures, "command", right=figures, no_wrap=figures)
    for process in processes:
        try:
            memory, command = process.memory_info().rss / 2**20, " ".join(process.cmdline())
        except psutil.Error:
            continue  # it has ended meanwhile
        shown = command if len(command) <= COMMAND else f"{command[: COMMAND - 1]}…"
        table.add_row(str(process.pid), f"{memory:.0f} MiB", field(shown))
    console.print(table)


def advice(run: RunView) -> str:
    """What a person can do next."""
    execution = run.execution
    again = f"evenkeel run --resume {run.run_id}"
    match run.state:
        case "running":
            return f"watch it: evenkeel logs -f {run.run_id}; stop it: evenkeel cancel {run.run_id}"
        case "candidate" if execution is not None and execution.candidate:
            try:
                return f"read the report, then: {approval_of_run(run.project, run.run_id, execution.candidate)}"
            except InputError as error:  # of the policy or the gate's result: the rest can be shown
                return f"read the report; the command that approves it is not known: {error.what}"
        case "stopped" | "dead" | "unknown":
            return f"go on where it stopped: {again}"
        case "failed":
            stage = run.stage.name if run.stage else ""
            return f"see why: evenkeel logs {run.run_id} {stage}".rstrip() + f"; when that is fixed: {again}"
        case "refused":
            return "read the report and the reason; other settings make another run"
    return "nothing: it is over"
