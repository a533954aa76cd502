"""Commands about this machine."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from components.errors import EXIT_BAD_INPUT
from flows import doctor as examination
from flows.cli.base import app, console

STATE_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


@app.command()
def doctor() -> None:
    """Check this machine and this project, and say how to mend what is wrong."""
    table = Table("check", "state", "finding", "how to mend it")
    worst = 0
    for check in examination.examine(Path.cwd()):
        worst = EXIT_BAD_INPUT if check.state == "fail" else worst
        table.add_row(check.name, Text(check.state, STATE_STYLES[check.state]), Text(check.finding), Text(check.mend))
    console.print(table)
    raise typer.Exit(worst)
