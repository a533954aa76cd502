"""The command that judges a log while it is written."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from components.health.following.calls import command, stop, webhook
from components.health.following.live import LiveLog
from components.health.following.said import Said
from components.health.readers import READERS, load_names
from components.health.rulebook import LOG_RULES, load_rules
from flows.cli.base import app
from flows.judging.watch_log import Watch, sources


@app.command()
def watch(
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG...", help="A log, those of several ranks, or - for a pipe.")
    ],
    format: Annotated[str, typer.Option("--format", help=f"auto, {', '.join(READERS)}.")] = "auto",
    names: Annotated[Path | None, typer.Option("--names", help="Mapping of their metrics to our signals.")] = None,
    rules: Annotated[Path, typer.Option("--rules", help="Health rules.")] = LOG_RULES,
    url: Annotated[str, typer.Option("--webhook", metavar="URL", help="Gets a grave verdict as JSON.")] = "",
    run: Annotated[
        str, typer.Option("--command", metavar="CMD", help="Run at a grave verdict; JSON on its input.")
    ] = "",
    pid: Annotated[int, typer.Option("--stop", metavar="PID", help="Gets SIGTERM at a grave verdict.")] = 0,
    state: Annotated[
        Path | None, typer.Option("--state", help="Keeps what was said, so a restart repeats nothing.")
    ] = None,
    every: Annotated[float, typer.Option("--every", min=0.05, help="Seconds between looks at the log.")] = 2.0,
    quiet: Annotated[
        float, typer.Option("--quiet", min=0, help="End when nothing is new for so long, s; 0: never.")
    ] = 0,
) -> None:
    """Judge the log of any trainer while it grows. Exit code 3: a rule of level rollback or stop fired."""
    said = Said() if state is None else Said.load(state)
    live = LiveLog(load_rules(rules), format, load_names(names) if names else None, said.until, list(said.fired))
    calls = [*([webhook(url)] if url else []), *([command(run)] if run else []), *([stop(pid)] if pid else [])]
    found = Watch(live, said, state, calls, lambda line: print(line, flush=True), every, quiet or math.inf)
    try:
        raise typer.Exit(found.follow(sources(logs)))
    except KeyboardInterrupt as stopped:
        raise typer.Exit(130) from stopped
