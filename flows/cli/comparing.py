"""The command that puts runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from components.files import write_text
from components.printing import printable
from components.progress import reporting
from components.working import working
from flows.cli.base import AsJson, app, console
from flows.display.output import print_json
from flows.host.git import project_root

PAGE = Path("compare.html")


@app.command()
def compare(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN RUN...", help="Two runs or more: an id, its beginning, or a folder.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help=f"The page; {PAGE} if empty, and none with --json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put runs side by side on one page: settings that differ, evaluation, curves, costs. Exit code 2: there is no such
    run, or what it left cannot be read."""
    with reporting("evenkeel"), working("reading the runs"):
        from components.compare import render, to_dict
        from flows.watching import comparing

        found = comparing.entries(project_root(Path.cwd()), runs)
    page = out or (None if as_json else PAGE)
    if page is not None:
        with reporting("evenkeel"), working("drawing the page"):
            write_text(page, render(found))
    if as_json:
        print_json(to_dict(found))
        return
    comparing.show(console, found)
    print(f"page  {printable(page)}")
