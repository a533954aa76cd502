"""Commands that run the pipeline."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import httpx
import typer
from rich.text import Text

from components.config import load
from components.errors import EXIT_NO_CANDIDATE
from components.files import read_json
from components.health.readers import load_names
from components.planning.least import check_run
from components.progress import reporting
from components.stages import wanted
from components.working import working
from flows.budget.estimate import Estimate, begin, line
from flows.cli.base import DEMO, EXIT_INTERRUPTED, AsJson, Config, Debug, DryRun, Overrides, app, console
from flows.display import summary
from flows.display.console import Display
from flows.display.output import print_json, say
from flows.governance.registry import decision_on, project_store
from flows.host.git import project_root
from flows.prefect_runtime.environment import loading, prefect_environment, start_server
from flows.prefect_runtime.server import NOTE, outcome_on_disk, server_needed
from flows.recording import RunRecord, read_record, read_recording, store_run
from flows.recording.lineage import changed_outputs, note_starter, propose_run
from flows.run.parameters import recipe_file
from flows.run.resumption import refuse_with_resume, reopen
from flows.run.workspace import Workspace, locate

EXIT_TERMINATED = 143
TRAINED_ELSEWHERE = ("sft.steps=0", "triage.override=trained elsewhere", "health.rules_file=logs")
"""Settings of a run that adopts a checkpoint."""


@app.command()
def run(
    config: Config = DEMO,
    recipe: Annotated[str, typer.Option(help="The method, in place of the configuration's.")] = "",
    overrides: Overrides = None,
    dry_run: DryRun = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over and execute every stage.")] = False,
    resume: Annotated[str | None, typer.Option(metavar="RUN-ID", help="Go on with a run, as it was begun.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Train, judge and propose a checkpoint. The same command again continues a run that was stopped."""
    project = project_root(Path.cwd())
    if resume is not None:
        refuse_with_resume("--", config=config != DEMO, recipe=bool(recipe), fresh=fresh)
    with reporting("evenkeel"), working("reading the settings and the inputs"):
        if resume is not None:
            workspace = reopen(project, resume, overrides or ())
        else:
            wanted_settings = load(config, overrides or (), recipe_file(recipe))
            check_run(wanted_settings, wanted(wanted_settings))  # before its inputs are digested, which takes a while
            workspace = locate(project, config, overrides or (), recipe=recipe_file(recipe))
    if dry_run:
        if as_json:
            print_json(summary.plan_to_dict(workspace, fresh=fresh))
        else:
            summary.show_plan(console, workspace, fresh=fresh)
        return
    record = read_record(workspace.root) if resume is not None else None
    if record and record.finished and complete(workspace, record):
        print_outcome(workspace, record.outcome.candidate, record.outcome.reason, as_json)
        return
    with reporting("evenkeel"):
        with working("estimating the costs"):
            found = begin(workspace, fresh=fresh)
        prepare(workspace, fresh=fresh, debug=debug)
        with loading():
            from flows.post_training import post_training  # imports Prefect, which reads its environment only once

    show_header(workspace, found)
    with handle_signals(), Display(workspace, console, wanted(workspace.settings)):
        start_server()
        commit, name = ("", workspace.run_id) if resume is not None else (workspace.snapshot.commit, "")
        note = []
        try:
            outcome = post_training(
                str(config), recipe, overrides=overrides or (), commit=commit, fresh=fresh, resume=name
            )
        except httpx.HTTPError as lost:
            outcome, note = outcome_on_disk(workspace, lost), [NOTE]
    say(console, *note)
    print_outcome(workspace, outcome.candidate, outcome.reason, as_json)


def complete(workspace: Workspace, record: RunRecord) -> bool:
    """Repeat what came after the last stage of a finished run: the proposal, the record and the push.

    Returns:
        False, with nothing repeated, where outputs of stages were changed or removed: these stages have to run again.
    """
    with workspace.held():
        with working("comparing the outputs with dvc.lock"):
            changed = changed_outputs(workspace.root)
        if changed:
            more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
            outputs = f"{', '.join(changed[:3])}{more}"
            say(console, f"{workspace.run_id}: not as its stages left them: {outputs}; they run again")
            return False
        if record.outcome.candidate:
            note_starter(workspace, None, deployed=False)
            with reporting("evenkeel"):
                propose_run(workspace, lambda problem: console.print(problem, soft_wrap=True))
        store_run(workspace, lambda: record)
    repeated = "proposed and recorded again" if record.outcome.candidate else "recorded again"
    console.print(f"{workspace.run_id} came to its end on {record.ended}: {repeated}")
    return True


def print_outcome(workspace: Workspace, candidate: str | None, reason: str, as_json: bool) -> None:
    """The last words about a run: its figures, where it is recorded, and what the answer is; as JSON what `evenkeel
    status RUN --json` prints."""
    if as_json:
        from flows.watching import status
        from flows.watching.runs import RunView

        print_json(status.to_dict(RunView(workspace.project, workspace.run_id)))
    layout = workspace.layout
    summary.show_figures(console, layout)
    summary.show_recording(console, read_recording(workspace.root))
    if candidate is None:
        summary.show_refusal(console, reason, layout.report)
        raise typer.Exit(EXIT_NO_CANDIDATE)
    decided = decision_on(project_store(workspace.project, workspace.settings), candidate)
    summary.show_candidate(console, workspace, candidate, decided)


@app.command(name="audit-verifier")
def audit_verifier(
    config: Config = DEMO,
    overrides: Overrides = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over and execute both stages.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Can the verifier be trusted? Judges answers known to be right or wrong; a failed audit blocks training."""
    with reporting("evenkeel"):
        with working("reading the settings and the inputs"):
            workspace = locate(project_root(Path.cwd()), config, overrides or ())
        prepare(workspace, fresh=fresh, debug=debug)
        with loading():
            from flows import audit_verifier as flow

    show_header(workspace)
    with handle_signals(), Display(workspace, console, flow.STAGES), server_needed():
        start_server()
        verdict = flow.audit_verifier(
            str(config), overrides=overrides or (), commit=workspace.snapshot.commit, fresh=fresh
        )
    summary.show_audit(console, workspace.layout)
    if as_json:
        print_json(read_json(workspace.layout.audit))
    if verdict != "pass":
        raise typer.Exit(EXIT_NO_CANDIDATE)


@app.command()
def adopt(
    checkpoint: Annotated[Path, typer.Argument(help="A Hugging Face folder with safetensors, or an adapter of peft.")],
    log: Annotated[Path, typer.Option(help="What the trainer logged: any log that `evenkeel audit` reads.")],
    base: Annotated[
        Path | None, typer.Option(help="The checkpoint that training began with; else policy.model.")
    ] = None,
    names: Annotated[Path | None, typer.Option(help="As for `evenkeel audit`.")] = None,
    config: Config = DEMO,
    overrides: Overrides = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Judge and propose a checkpoint that another trainer made. Nothing is trained: data, verifier, evaluation, probe
    sets, gate, report and approval are those of a run. What its log cannot show is left to the person who approves.
    """
    adopted: dict[str, Any] = {"checkpoint": {"path": str(checkpoint)}, "log": {"path": str(log)}}
    if names is not None:
        adopted["names"] = load_names(names).model_dump(mode="json")
    settings = [f"train.adopted={json.dumps(adopted)}", *TRAINED_ELSEWHERE]
    if base is not None:
        settings.append(f"policy.model={json.dumps({'kind': 'checkpoint', 'path': str(base)})}")
    run(config, overrides=[*settings, *(overrides or ())], dry_run=dry_run, as_json=as_json, debug=debug)


def prepare(workspace: Workspace, *, fresh: bool, debug: bool) -> None:
    """Make the workspace and Prefect's environment: what can be refused is refused before Prefect is started."""
    if debug:
        os.environ["EVENKEEL_DEBUG"] = "1"
    logging.raiseExceptions = debug  # else Prefect prints each time that a log did not reach a server that went away
    with working("creating the workspace"), workspace.held(fresh=fresh):
        workspace.progress.unlink(missing_ok=True)
    os.environ.update(prefect_environment(workspace.project, quiet=not debug))


def show_header(workspace: Workspace, found: Estimate | None = None) -> None:
    """Which run this is, of what code, and how long it will take."""
    taken = workspace.snapshot
    origin = "" if taken.clean else "  (a snapshot of the working tree)"
    where = workspace.root.relative_to(workspace.project)
    console.print(Text.assemble((workspace.run_id, "bold"), f"  commit {taken.commit[:12]}{origin}  {where}"))
    if found is not None:
        say(console, *line(workspace, found).splitlines())


@contextmanager
def handle_signals(resume_hint: str = "; the same command continues from the last checkpoint") -> Iterator[None]:
    """On SIGINT and SIGTERM end orderly and print how to continue."""

    def terminate(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(EXIT_TERMINATED)

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as stopped:
        print(f"stopped{resume_hint}", file=sys.stderr)
        code = stopped.code if isinstance(stopped, SystemExit) else EXIT_INTERRUPTED
        raise typer.Exit(code if isinstance(code, int) else EXIT_TERMINATED) from stopped
    finally:
        signal.signal(signal.SIGTERM, before)
