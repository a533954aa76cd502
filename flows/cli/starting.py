"""Commands that begin a project and say what is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from components.printing import printable
from flows.cli.base import app, console
from flows.display.output import field, print_json
from flows.host.git import project_root
from flows.starting.versions import versions


@app.command()
def init(folder: Annotated[Path, typer.Argument(help="A folder that is not there yet.")]) -> None:
    """Make a project of your own: a Git repository with configuration, pipeline, policy, a verifier and its test."""
    from flows.starting.project import start

    start(folder)
    console.print(
        field(f"{printable(folder)}: cd there, then `evenkeel run`; its README.md has the rest"), soft_wrap=True
    )


@app.command()
def update() -> None:
    """Record the installed package in the project around this folder, after another version was installed."""
    from flows.starting import project

    changed = project.update(project_root(Path.cwd()))
    said = f"{', '.join(changed)}: executed again by the next run" if changed else "no stage has other code than before"
    console.print(field(f"evenkeel {project.installed()}; {said}. Commit what has changed."), soft_wrap=True)


@app.command()
def version(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Versions of this package and of what its results depend on most, and the commit of a checkout."""
    found = versions()
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        if value is not None:
            console.print(field(f"{name:<12} {value}"), soft_wrap=True)
