"""Commands that look at runs, put them side by side, and stop them."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from components.errors import EXIT_NO_CANDIDATE
from components.files import write_text
from components.printing import printable
from components.progress import reporting
from components.working import working
from flows.cleaning import cleanup
from flows.cli.base import EXIT_INTERRUPTED, AsJson, answer, app, console
from flows.display.output import log_writer, print_json
from flows.host.git import project_root
from flows.serving.service import served
from flows.watching import approvals
from flows.watching import cancel as cancelling
from flows.watching import logs as printed
from flows.watching import status as shown
from flows.watching.runs import all_runs, find_run

PAGE = Path("compare.html")
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or as much of its beginning as is needed.")]


@app.command()
def status(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="A run's id, or its beginning.")] = None,
    as_json: AsJson = False,
) -> None:
    """What the runs of this project are doing and which candidates await approval, or all about one run. Needs no
    server. Exit code 2: there is no such run."""
    project = project_root(Path.cwd())
    if run is not None:
        one = find_run(project, run)
        answer(as_json, lambda: shown.to_dict(one), lambda: shown.show_run(console, one))
        return
    found = all_runs(project)
    waiting = approvals.find_waiting(project, found)
    if as_json:
        print_json(approvals.rows(found, waiting.waiting))
    else:
        shown.show_runs(console, found)
        approvals.show(console, waiting)


@app.command()
def logs(
    run: Run,
    stage: Annotated[str | None, typer.Argument(help="The present or last stage when empty.")] = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on, stage after stage, until it ends.")] = False,
    lines: Annotated[int | None, typer.Option("-n", "--lines", min=0, help="Begin with the last lines only.")] = None,
) -> None:
    """What a run's stages have printed. Exit code 2: there is no such run or log."""
    found = find_run(project_root(Path.cwd()), run)

    def begins(name: str) -> None:
        print(f"==> {printable(name)} <==", file=sys.stderr, flush=True)

    write = log_writer(lambda text: print(text, end="", flush=True))
    try:
        if follow:
            printed.follow(found, stage, lines, write, begins)
        else:
            printed.show(found, stage, lines, write)
    except KeyboardInterrupt as stopped:
        raise typer.Exit(EXIT_INTERRUPTED) from stopped


@app.command()
def track(run: Run, seconds: Annotated[float, typer.Option(min=1, help="How long this may take.")] = 600.0) -> None:
    """Send to a run's sinks what they do not have yet, as after a run whose tracker was away. Exit code 2: there is no
    such run; 3: not everything could be sent."""
    from components.config import load
    from components.sinks import check_sinks
    from flows.watching.tracking import track  # imports Prefect

    found = find_run(project_root(Path.cwd()), run)
    check_sinks(load(found.layout.params))
    if not track(found.root, _print, seconds):
        raise typer.Exit(EXIT_NO_CANDIDATE)


@app.command()
def cancel(
    run: Run, grace: Annotated[float, typer.Option(min=0, help="Seconds that it has to end by itself.")] = 45.0
) -> None:
    """Stop a run and all that it started. Exit code 0: no process of it is left; 2: it did not run, or cannot be
    stopped."""
    cancelling.cancel(find_run(project_root(Path.cwd()), run), grace, _print)


def _print(line: str) -> None:
    print(printable(line), flush=True)


@app.command()
def janitor(
    keep_days: Annotated[
        int, typer.Option(min=0, max=36500, help="Remove recorded workspaces that ended longer ago; 0 keeps all.")
    ] = 0,
    namespace: Annotated[str, typer.Option(help="Also delete orphaned JobSets in this namespace of the cluster.")] = "",
    as_json: AsJson = False,
) -> None:
    """Remove what dead runs left behind: processes, partial folders, weights, flow runs without a process."""
    project = project_root(Path.cwd())
    service = served(project)
    api = os.environ.get("PREFECT_API_URL") or (service.api_url if service else None)
    actions = cleanup.clean(project, keep_days, api, namespace)
    answer(as_json, lambda: [asdict(action) for action in actions], lambda: cleanup.show(console, actions))


@app.command()
def compare(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN RUN...", help="Two runs or more: an id, its beginning, or a folder.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"The page; {PAGE} if empty, and none with --json.")
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
