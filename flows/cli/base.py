"""The application that all commands belong to, the options they share, and its entry point."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from components.errors import EvenkeelError, of_machine
from components.opening import check_working_folder
from flows.display.output import OutputLost, PlainConsole, guarded_output, print_json
from flows.run import parameters

DEMO = Path(parameters.DEMO)
EXIT_INTERRUPTED = 130
HELP = (
    "Keeps GRPO post-training on an even keel: run, watch, judge, approve.\n\n"
    "Exit codes: 0 a candidate awaits approval, or the command succeeded; 2 the input or the machine is not as "
    "it must be, or the budget is spent; 3 everything worked and the answer is no: no candidate, a grave verdict, a "
    "gate that does not pass, an approval that is missing; 75 something that the run depends on is gone, and the same "
    "command continues the run; 130 and 143 stopped by a signal; 141 the reader of the output has exited."
)

app = typer.Typer(help=HELP, no_args_is_help=True, pretty_exceptions_enable=False)
console = PlainConsole()

Config = Annotated[Path, typer.Option("--config", help="Configuration file.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", metavar="A.B=VALUE", help="Replace one setting.")]


def _json_alone(as_json: bool) -> bool:
    """With ``--json`` standard output holds the JSON alone: what is said meanwhile goes to standard error."""
    console.stderr = as_json
    return as_json


AsJson = Annotated[
    bool, typer.Option("--json", callback=_json_alone, help="Print JSON; all else goes to standard error.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks, and Prefect's log.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would run, and stop.")]


def answer(as_json: bool, value: Callable[[], Any], show: Callable[[], object]) -> None:
    """What a command has found: one JSON value, or what `show` prints."""
    if as_json:
        print_json(value())
    else:
        show()


def main() -> None:
    """Entry point of the console script: expected failures become one clear message."""
    try:
        with guarded_output():
            check_working_folder()
            app()
    except EvenkeelError as error:
        end(error)
    except OSError as error:
        if (refused := of_machine(error)) is None:
            raise
        end(refused)


def end(error: EvenkeelError) -> NoReturn:
    """Say what was wrong, and exit with its code, also where standard error takes nothing more."""
    try:
        if os.environ.get("EVENKEEL_DEBUG"):
            traceback.print_exc()
        if not (isinstance(error, OutputLost) and error.quiet):
            print(error, file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    sys.exit(error.exit_code)
