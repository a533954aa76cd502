"""The command that executes a recorded run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from components.stages import wanted
from flows.cli.base import AsJson, app, console
from flows.cli.runs import handle_signals
from flows.display.console import Display
from flows.display.output import field, plain_table, print_json, say
from flows.host.git import project_root
from flows.recording.comparison import Comparison, Difference
from flows.recording.reproduction import Reproduction, checked_out, reproduce_run

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
        show_header(reproduction)
        shown = Display(reproduction, console, wanted(reproduction.settings))
        with handle_signals("; the same command starts over"), shown:
            found = reproduce_run(reproduction)
        show(found, reproduction)
        if as_json:
            print_json(found.to_dict())
    raise typer.Exit(found.exit_code)


def show_header(reproduction: Reproduction) -> None:
    """Which run is executed again, and where."""
    where = reproduction.root.relative_to(reproduction.project)
    commit = reproduction.snapshot.commit[:12]
    console.print(Text.assemble((reproduction.run_id, "bold"), f" again  commit {commit}  {where}"))


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
