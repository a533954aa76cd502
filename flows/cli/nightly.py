"""The command `nightly`, which a schedule can also start."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from components.config import load
from components.stages import wanted
from flows.budget.estimate import begin
from flows.cli.base import AsJson, Config, Debug, Overrides, app, console
from flows.cli.runs import handle_signals, prepare, print_outcome, show_header
from flows.display.console import Display
from flows.display.output import print_json, say
from flows.host.git import project_root
from flows.prefect_runtime.environment import loading, prefect_environment, start_server
from flows.prefect_runtime.server_lost import server_needed
from flows.retraining.ledger import Ledger
from flows.retraining.plan import Start, plan_retraining
from flows.retraining.summaries import summary_before, unchanged_summary

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
