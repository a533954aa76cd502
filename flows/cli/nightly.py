"""The command `nightly`, which a schedule can also start, and the one that executes a recorded run again."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from components.config import load
from components.stages import wanted
from flows.budget.estimate import begin
from flows.cli.base import AsJson, Config, Debug, Overrides, app, console
from flows.cli.runs import handle_signals, prepare, print_outcome, show_header
from flows.display.console import Display
from flows.display.output import field, plain_table, print_json, say
from flows.host.git import project_root
from flows.prefect_runtime.environment import loading, prefect_environment, start_server
from flows.prefect_runtime.server import server_needed
from flows.recording.reproduction import Comparison, Difference, Reproduction, checked_out, reproduce_run
from flows.retraining.ledger import Ledger
from flows.retraining.plan import Start, plan_retraining, summary_before, unchanged_summary

NIGHTLY = Path("configs/nightly.yaml")


@app.command()
def nightly(
    config: Config = NIGHTLY,
    incoming: Annotated[str, typer.Option(help="Folder of JSON-lines files that join the data.")] = "",
    start: Annotated[Start, typer.Option(help="Its own start, or the approved checkpoint.")] = "base",
    overrides: Overrides = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over and execute every stage.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Train on what is new, and compare with the champion. Nothing new: say so, and stop. One at a time."""
    project, typed, now = project_root(Path.cwd()), overrides or (), time.time()
    with Ledger(project, load(config, typed).name).held():
        plan = plan_retraining(project, config, incoming, start, typed, now=now)
    workspace, answered = plan.workspace, None if fresh else plan.previous
    os.environ.update(prefect_environment(project, quiet=not debug))
    if answered and "PREFECT_API_URL" not in os.environ:  # no server to tell
        _nothing_new([*summary_before(plan), unchanged_summary(plan, answered)], as_json)
        return
    if not answered:
        found = begin(workspace, fresh=fresh)
        prepare(workspace, fresh=fresh, debug=debug)
        show_header(workspace, found)
    with loading():
        from flows import nightly as flow  # imports Prefect, which reads its environment only once

    with handle_signals(), Display(workspace, console, wanted(workspace.settings)), server_needed():
        start_server()
        ended = flow.nightly(
            str(config), incoming, start, overrides=typed, commit=workspace.snapshot.commit, fresh=fresh, now=now
        )
    if ended.nothing_new:
        _nothing_new(ended.lines, as_json)
        return
    say(console, *ended.lines[:-1])
    # Not the planned run if another run has ended, or a champion was approved, since then.
    workspace = replace(workspace, run_id=ended.outcome.run_id)
    print_outcome(workspace, ended.outcome.candidate, ended.outcome.reason, as_json)


def _nothing_new(lines: Sequence[str], as_json: bool) -> None:
    """Say why no run began."""
    if as_json:
        print_json({"run": None, "says": list(lines)})
    say(console, *lines)


SHOWN = 8
"""Differences of a stage that are shown; the file named at the end has all."""
WIDTH = 22
"""Characters of a value that are shown."""


@app.command()
def reproduce(
    run_id: Annotated[str, typer.Argument(help="The run, or the first characters of its id.")], as_json: AsJson = False
) -> None:
    """Execute a recorded run again from its branch and compare. Exit code 0: equal; 3: different; 2: impossible."""
    with checked_out(project_root(Path.cwd()), run_id) as reproduction:
        where, commit = reproduction.root.relative_to(reproduction.project), reproduction.snapshot.commit[:12]
        console.print(Text.assemble((reproduction.run_id, "bold"), f" again  commit {commit}  {where}"))
        shown = Display(reproduction, console, wanted(reproduction.settings))
        with handle_signals("; the same command starts over"), shown:
            found = reproduce_run(reproduction)
        show(found, reproduction)
        if as_json:
            print_json(found.to_dict())
    raise typer.Exit(found.exit_code)


def show(found: Comparison, reproduction: Reproduction) -> None:
    """A row a stage, then what differs, then what is different about this machine."""
    console.print(_stages(found))
    if found.equal:
        exactly = f"within {found.tolerance:g}" if found.tolerance else "to the byte"
        console.print(Text(f"{found.run_id} came out as recorded, {exactly}", "green"))
        return
    console.print(_differences(found))
    console.print(Text(f"{found.run_id} came out differently", "bold yellow"))
    if found.machine:
        console.print("what is different about this machine, and may be the cause:")
        say(console, *(f"  {line}" for line in found.machine))
    else:
        console.print("this machine and its packages are those of the record: look for a changed file or setting")
    say(console, f"all of it  {reproduction.layout.state / 'comparison.json'}")


def _stages(found: Comparison) -> Table:
    counts = ("outputs", "metrics", "differ")
    table = plain_table("stage", *counts, right=counts)
    for stage in found.outputs:
        count = len(found.of(stage))
        cells = [str(found.outputs[stage] or "-"), str(found.metrics[stage] or "-"), str(count)]
        table.add_row(stage, *cells, style="yellow" if count else None)
    return table


def _differences(found: Comparison) -> Table:
    table = plain_table("stage", "output or metric", "recorded", "found")
    for stage in found.outputs:
        rows = found.of(stage)
        for one in rows[:SHOWN]:
            table.add_row(one.stage, field(one.what), *map(field, _values(one)))
        if len(rows) > SHOWN:
            table.add_row(stage, f"and {len(rows) - SHOWN} more")
    return table


def _values(one: Difference) -> list[str]:
    return [value if len(value) <= WIDTH else f"{value[: WIDTH - 1]}…" for value in (one.recorded, one.found)]
