"""Commands that look at runs, and stop them."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from components.errors import EXIT_NO_CANDIDATE
from components.printing import printable
from flows.cli.base import AsJson, app, console
from flows.display.output import log_writer, print_json
from flows.host.git import project_root

Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or as much of its beginning as is needed.")]


@app.command()
def status(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="A run's id, or its beginning.")] = None,
    as_json: AsJson = False,
) -> None:
    """What the runs of this project are doing and which candidates await approval, or all about one run. Needs no
    server. Exit code 2: there is no such run."""
    from flows.watching import approvals, runs, status

    project = project_root(Path.cwd())
    if run is None:
        found = runs.all_runs(project)
        waiting = approvals.find_waiting(project, found)
        if as_json:
            print_json(approvals.rows(found, waiting.waiting))
        else:
            status.show_runs(console, found)
            approvals.show(console, waiting)
        return
    one = runs.find_run(project, run)
    if as_json:
        print_json(status.to_dict(one))
    else:
        status.show_run(console, one)


@app.command()
def logs(
    run: Run,
    stage: Annotated[str | None, typer.Argument(help="The present or last stage when empty.")] = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on, stage after stage, until it ends.")] = False,
    lines: Annotated[int | None, typer.Option("-n", "--lines", min=0, help="Begin with the last lines only.")] = None,
) -> None:
    """What a run's stages have printed. Exit code 2: there is no such run or log."""
    from flows.watching import logs
    from flows.watching.runs import find_run

    found = find_run(project_root(Path.cwd()), run)

    def begins(name: str) -> None:
        print(f"==> {printable(name)} <==", file=sys.stderr, flush=True)

    write = log_writer(lambda text: print(text, end="", flush=True))
    try:
        if follow:
            logs.follow(found, stage, lines, write, begins)
        else:
            logs.show(found, stage, lines, write)
    except KeyboardInterrupt as stopped:
        raise typer.Exit(130) from stopped


@app.command()
def track(
    run: Run,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="How long this may take.")] = 600.0,
) -> None:
    """Send to a run's sinks what they do not have yet, as after a run whose tracker was away. Exit code 2: there is no
    such run; 3: not everything could be sent."""
    from components.config import load
    from components.sinks import check_sinks
    from flows.watching.runs import find_run
    from flows.watching.tracking import track

    found = find_run(project_root(Path.cwd()), run)
    check_sinks(load(found.layout.params))
    if not track(found.root, lambda line: print(printable(line), flush=True), seconds):
        raise typer.Exit(EXIT_NO_CANDIDATE)


@app.command()
def cancel(
    run: Run,
    grace: Annotated[float, typer.Option("--grace", min=0, help="Seconds that it has to end by itself.")] = 45.0,
) -> None:
    """Stop a run and all that it started. Exit code 0: no process of it is left; 2: it did not run, or cannot be
    stopped."""
    from flows.watching.cancel import cancel
    from flows.watching.runs import find_run

    cancel(find_run(project_root(Path.cwd()), run), grace, lambda line: print(printable(line), flush=True))


@app.command()
def janitor(
    keep_days: Annotated[
        int,
        typer.Option(
            "--keep-days",
            min=0,
            max=36500,
            help="Remove recorded workspaces that ended longer ago; 0 keeps all.",
        ),
    ] = 0,
    namespace: Annotated[
        str,
        typer.Option("--namespace", help="Also delete orphaned JobSets in this namespace of the cluster."),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Remove what dead runs left behind: processes, partial folders, weights, flow runs without a process."""
    from flows.cleaning import cleanup
    from flows.serving.service import served

    project = project_root(Path.cwd())
    service = served(project)
    api = os.environ.get("PREFECT_API_URL") or (service.api_url if service else None)
    actions = cleanup.clean(project, keep_days, api, namespace)
    if as_json:
        print_json([asdict(action) for action in actions])
    else:
        cleanup.show(console, actions)
