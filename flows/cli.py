"""``evenkeel``: run, audit, look, approve.

Exit codes: 0 a candidate awaits approval, or the command did what it says; 2 the input or the machine is not as it must
be; 3 everything worked and the answer is no: no candidate, a grave verdict, a gate that does not pass; 130 and 143
stopped by a signal.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.config import dump, load, pin_inputs
from components.errors import EXIT_BAD_INPUT, EXIT_NO_CANDIDATE, EvenkeelError
from components.files import dump_json
from components.health.rulebook import DEFAULT_RULES, load_rules
from components.stages import wanted
from flows import audit_log, show_rules, summary
from flows import doctor as examination
from flows.console import Display
from flows.environment import prefect_environment, start_server
from flows.git import project_root
from flows.plan import show_plan
from flows.registry import decide, decision_on, project_store
from flows.workspace import Workspace, locate

DEMO = Path("configs/demo.yaml")
EXIT_INTERRUPTED, EXIT_TERMINATED = 130, 143
STATE_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
console = Console()

Config = Annotated[Path, typer.Option("--config", help="Configuration file.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", metavar="A.B=VALUE", help="Replace one setting.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks, and Prefect's log.")]


def main() -> None:
    """Entry point of the console script: expected failures become one clear message."""
    try:
        app()
    except EvenkeelError as error:
        if os.environ.get("EVENKEEL_DEBUG"):
            traceback.print_exc()
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


@app.command()
def run(
    config: Config = DEMO,
    overrides: Overrides = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run, and stop.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew and execute every stage.")] = False,
    debug: Debug = False,
) -> None:
    """Train, judge and propose a checkpoint. The same command again continues a run that was stopped."""
    workspace = locate(project_root(Path.cwd()), config, overrides or ())
    if dry_run:
        show_plan(console, workspace)
        return
    prepare(workspace, fresh=fresh, debug=debug)
    from flows.post_training import post_training  # imports Prefect, which reads its environment only once

    show_header(workspace)
    with stoppable(), Display(workspace, console, wanted(workspace.settings)):
        start_server()
        outcome = post_training(str(config), overrides, workspace.snapshot.commit, fresh)
    summary.show_figures(console, workspace.layout)
    if outcome.candidate is None:
        summary.show_refusal(console, outcome.reason, workspace.layout.report)
        raise typer.Exit(EXIT_NO_CANDIDATE)
    decided = decision_on(project_store(workspace.project, workspace.settings), outcome.candidate)
    summary.show_candidate(console, outcome.candidate, workspace.layout.report, decided, config)


@app.command(name="audit-verifier")
def audit_verifier(
    config: Config = DEMO,
    overrides: Overrides = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew and execute both stages.")] = False,
    debug: Debug = False,
) -> None:
    """Can the verifier be trusted? Judges answers known to be right or wrong; a failed audit blocks training."""
    workspace = locate(project_root(Path.cwd()), config, overrides or ())
    prepare(workspace, fresh=fresh, debug=debug)
    from flows import audit_verifier as flow

    show_header(workspace)
    with stoppable(), Display(workspace, console, flow.STAGES):
        start_server()
        verdict = flow.audit_verifier(str(config), overrides, workspace.snapshot.commit, fresh)
    summary.show_audit(console, workspace.layout)
    if verdict != "pass":
        raise typer.Exit(EXIT_NO_CANDIDATE)


def prepare(workspace: Workspace, *, fresh: bool, debug: bool) -> None:
    """Make the workspace and Prefect's environment: what can be refused is refused before Prefect is started."""
    if debug:
        os.environ["EVENKEEL_DEBUG"] = "1"
    with workspace.held(fresh=fresh):
        workspace.progress.unlink(missing_ok=True)
    os.environ.update(prefect_environment(workspace.project, quiet=not debug))


def show_header(workspace: Workspace) -> None:
    """Which run this is, and of what code."""
    taken = workspace.snapshot
    origin = "" if taken.clean else "  (a snapshot of the working tree)"
    where = workspace.root.relative_to(workspace.project)
    console.print(f"[bold]{workspace.run_id}[/]  commit {taken.commit[:12]}{origin}  {where}", highlight=False)


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into an orderly end that says how to go on."""

    def terminate(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(EXIT_TERMINATED)

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as stopped:
        print("stopped; the same command continues from the last checkpoint", file=sys.stderr)
        code = stopped.code if isinstance(stopped, SystemExit) else EXIT_INTERRUPTED
        raise typer.Exit(code if isinstance(code, int) else EXIT_TERMINATED) from stopped
    finally:
        signal.signal(signal.SIGTERM, before)


@app.command()
def audit(
    log: Annotated[Path, typer.Argument(help="trainer_state.json, a console's output, or JSON lines.")],
    format: Annotated[str, typer.Option("--format", help="auto, trl, verl, prime-rl or jsonl.")] = "auto",
    names: Annotated[Path | None, typer.Option("--names", help="Mapping of their metrics to our signals.")] = None,
    rules: Annotated[Path, typer.Option("--rules", help="Health rules.")] = DEFAULT_RULES,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Replay the health rules over the log of any trainer. Exit code 3: a rule of level rollback or stop spoke."""
    found = audit_log.audit_log(log, format, names, rules)
    if as_json:
        print(dump_json(found.to_dict()), end="")
    else:
        audit_log.show(console, found)
    raise typer.Exit(found.exit_code)


@app.command()
def gate(
    run: Annotated[Path | None, typer.Option("--run", help="Folder of a run; that of --config when empty.")] = None,
    config: Config = DEMO,
    overrides: Overrides = None,
    rules: Annotated[Path | None, typer.Option("--rules", help="Health rules instead of the run's own.")] = None,
) -> None:
    """Judge a finished run again. Exit code 0: pass; 3: fail or inconclusive, as the table says."""
    from flows import judge_again  # the only command that needs a stage's code

    found = judge_again.judge_again(judge_again.find_run(run, config, overrides or ()), rules)
    judge_again.show(console, found)
    raise typer.Exit(found.exit_code)


@app.command()
def rules(file: Annotated[Path, typer.Argument(help="Health rules.")] = DEFAULT_RULES) -> None:
    """Compile a file of health rules and print it. Exit code 2: it is malformed."""
    show_rules.show(console, load_rules(file))


@app.command()
def params(config: Config = DEMO, overrides: Overrides = None) -> None:
    """Print every setting of a configuration: what stages read, and what `params.yaml` holds."""
    print(f"# Every setting of {config}, made by `evenkeel params --config {config}`.")
    print(dump(pin_inputs(load(config, overrides or ()))), end="")


@app.command()
def approve(
    digest: Annotated[str, typer.Argument(help="Digest of the candidate, or its first digits.")],
    by: Annotated[str, typer.Option("--by", help="Your name. It is recorded as you type it.")],
    reject: Annotated[bool, typer.Option("--reject", help="Turn the candidate down.")] = False,
    note: Annotated[str, typer.Option("--note", help="Why.")] = "",
    config: Config = DEMO,
) -> None:
    """Decide on a candidate. An approval makes it the champion; a decision is final."""
    store = project_store(project_root(Path.cwd()), load(config))
    record = decide(store, digest, by=by, reject=reject, note=note)
    print(f"record {record.number}: {record.decision} {record.digest[:12]} by {record.by}")


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
