"""Commands that look at runs, put them side by side, stop them, and judge what is there already or is being written."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from components.config import dump, load, pin_inputs
from components.errors import EXIT_NO_CANDIDATE, InputError
from components.files import write_text
from components.health.following.calls import command, stop, webhook
from components.health.following.live import LiveLog, Said
from components.health.readers import READERS, load_names
from components.health.rulebook import DEFAULT_RULES, LOG_RULES, load_rules
from components.printing import printable
from components.progress import reporting
from components.working import working
from flows.cleaning import cleanup
from flows.cli.base import DEMO, EXIT_INTERRUPTED, AsJson, Config, Overrides, answer, app, console
from flows.display.output import log_writer, print_json
from flows.host.git import project_root
from flows.judging import audit_log
from flows.judging.watch_log import STDIN, Watch, sources
from flows.promoting.waiting_runs import server_url
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
    actions = cleanup.clean(project, keep_days, server_url(project), namespace)
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


Format = Annotated[str, typer.Option(help=f"auto, {', '.join(READERS)}.")]
Names = Annotated[Path | None, typer.Option(help="Mapping of their metrics to our signals.")]


@app.command()
def audit(
    log: Annotated[Path, typer.Argument(help="trainer_state.json, a console's output, or JSON lines.")],
    format: Format = "auto",
    names: Names = None,
    rules: Annotated[Path | None, typer.Option(help="Health rules, instead of those for such a log.")] = None,
    as_json: AsJson = False,
) -> None:
    """Replay the health rules over the log of any trainer. Exit code 3: a rule of level rollback or stop fired."""
    found = audit_log.audit_log(log, format, names, rules)
    answer(as_json, found.to_dict, lambda: audit_log.show(console, found))
    raise typer.Exit(found.exit_code)


@app.command()
def gate(
    run: Annotated[Path | None, typer.Option(help="Folder of a run; that of --config when empty.")] = None,
    config: Config = DEMO,
    overrides: Overrides = None,
    rules: Annotated[Path | None, typer.Option(help="Health rules instead of the run's own.")] = None,
    as_json: AsJson = False,
) -> None:
    """Judge a finished run again. Exit code 0: pass; 3: fail or inconclusive."""
    from flows.judging import rejudge  # the only command that needs a stage's code

    found = rejudge.rejudge_run(rejudge.find_run(run, config, overrides or ()), rules)
    answer(as_json, found.to_dict, lambda: rejudge.show(console, found))
    raise typer.Exit(found.exit_code)


@app.command()
def rules(file: Annotated[Path, typer.Argument(help="Health rules.")] = DEFAULT_RULES, as_json: AsJson = False) -> None:
    """Compile a file of health rules and print it. Exit code 2: it is malformed."""
    found = load_rules(file)
    named = {name: rule.model_dump(mode="json") for name, rule in found.items()}
    answer(as_json, lambda: named, lambda: audit_log.show_rules(console, found))


@app.command()
def params(config: Config = DEMO, overrides: Overrides = None) -> None:
    """Print every setting of a configuration: what stages read, and what `params.yaml` holds."""
    text = dump(pin_inputs(load(config, overrides or ())))
    named = printable(config)
    print(f"# Every setting of {named}, made by `evenkeel params --config {named}`.")
    print(text, end="")


@app.command()
def watch(
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG...", help="A log, those of several ranks, or - for a pipe.")
    ],
    format: Format = "auto",
    names: Names = None,
    rules: Annotated[Path, typer.Option(help="Health rules.")] = LOG_RULES,
    url: Annotated[str, typer.Option("--webhook", metavar="URL", help="Gets a grave verdict as JSON.")] = "",
    run: Annotated[
        str, typer.Option("--command", metavar="CMD", help="Run at a grave verdict; JSON on its input.")
    ] = "",
    pid: Annotated[int, typer.Option("--stop", metavar="PID", help="Gets SIGTERM at a grave verdict.")] = 0,
    state: Annotated[Path | None, typer.Option(help="Keeps what was said, so a restart repeats nothing.")] = None,
    every: Annotated[float, typer.Option(min=0.05, help="Seconds between looks at the log.")] = 2.0,
    quiet: Annotated[float, typer.Option(min=0, help="End when nothing is new for so long, s; 0: never.")] = 0,
) -> None:
    """Judge the log of any trainer while it grows. Exit code 3: a rule of level rollback or stop fired."""
    said = Said() if state is None else Said.load(state)
    live = LiveLog(load_rules(rules), format, load_names(names) if names else None, said.until, list(said.fired))
    calls = [*([webhook(url)] if url else []), *([command(run)] if run else []), *([stop(pid)] if pid else [])]
    found = Watch(live, said, state, calls, lambda line: print(line, flush=True), every, quiet or math.inf)
    given, missing = sources(logs), [path for path in logs if path != STDIN and not path.exists()]
    for path in missing:
        print(f"{printable(path)} is not there yet: waiting for it", file=sys.stderr)
    try:
        code = found.follow(given)
    except KeyboardInterrupt as stopped:
        raise typer.Exit(EXIT_INTERRUPTED) from stopped
    if absent := [path for path in missing if not path.exists()]:
        raise InputError(f"no log came within {quiet:g} s", where=absent[0], how="correct the path, or raise --quiet")
    raise typer.Exit(code)
