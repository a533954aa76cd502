"""Commands that judge what is there already, and print what would be judged by."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from components.config import dump, load, pin_inputs
from components.health.readers import READERS
from components.health.rulebook import DEFAULT_RULES, load_rules
from components.printing import printable
from flows.cli.base import DEMO, AsJson, Config, Overrides, app, console
from flows.display.output import print_json
from flows.judging import audit_log


@app.command()
def audit(
    log: Annotated[Path, typer.Argument(help="trainer_state.json, a console's output, or JSON lines.")],
    format: Annotated[str, typer.Option("--format", help=f"auto, {', '.join(READERS)}.")] = "auto",
    names: Annotated[Path | None, typer.Option("--names", help="Mapping of their metrics to our signals.")] = None,
    rules: Annotated[
        Path | None, typer.Option("--rules", help="Health rules, instead of those for such a log.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Replay the health rules over the log of any trainer. Exit code 3: a rule of level rollback or stop fired."""
    found = audit_log.audit_log(log, format, names, rules)
    if as_json:
        print_json(found.to_dict())
    else:
        audit_log.show(console, found)
    raise typer.Exit(found.exit_code)


@app.command()
def gate(
    run: Annotated[Path | None, typer.Option("--run", help="Folder of a run; that of --config when empty.")] = None,
    config: Config = DEMO,
    overrides: Overrides = None,
    rules: Annotated[Path | None, typer.Option("--rules", help="Health rules instead of the run's own.")] = None,
    as_json: AsJson = False,
) -> None:
    """Judge a finished run again. Exit code 0: pass; 3: fail or inconclusive."""
    from flows.judging import rejudge  # the only command that needs a stage's code

    found = rejudge.rejudge_run(rejudge.find_run(run, config, overrides or ()), rules)
    if as_json:
        print_json(found.to_dict())
    else:
        rejudge.show(console, found)
    raise typer.Exit(found.exit_code)


@app.command()
def rules(file: Annotated[Path, typer.Argument(help="Health rules.")] = DEFAULT_RULES, as_json: AsJson = False) -> None:
    """Compile a file of health rules and print it. Exit code 2: it is malformed."""
    found = load_rules(file)
    if as_json:
        print_json({name: rule.model_dump(mode="json") for name, rule in found.items()})
    else:
        audit_log.show_rules(console, found)


@app.command()
def params(config: Config = DEMO, overrides: Overrides = None) -> None:
    """Print every setting of a configuration: what stages read, and what `params.yaml` holds."""
    text = dump(pin_inputs(load(config, overrides or ())))
    named = printable(config)
    print(f"# Every setting of {named}, made by `evenkeel params --config {named}`.")
    print(text, end="")
