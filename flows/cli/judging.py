"""Commands that judge what is there already or is being written, and print what would be judged by."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from components.config import dump, load, pin_inputs
from components.health.following.calls import command, stop, webhook
from components.health.following.live import LiveLog
from components.health.following.said import Said
from components.health.readers import READERS, load_names
from components.health.rulebook import DEFAULT_RULES, LOG_RULES, load_rules
from components.printing import printable
from flows.cli.base import DEMO, EXIT_INTERRUPTED, AsJson, Config, Overrides, answer, app, console
from flows.judging import audit_log
from flows.judging.watch_log import Watch, sources

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
    try:
        raise typer.Exit(found.follow(sources(logs)))
    except KeyboardInterrupt as stopped:
        raise typer.Exit(EXIT_INTERRUPTED) from stopped
