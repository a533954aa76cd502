"""The application that all commands belong to, the options they share, and its entry point."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from components.errors import EvenkeelError
from components.opening import check_working_folder

DEMO = Path("configs/demo.yaml")
HELP = (
    "Keeps GRPO post-training on an even keel: run, watch, judge, approve.\n\n"
    "Exit codes: 0 a candidate awaits approval, or the command did what it says; 2 the input or the machine is not as "
    "it must be, or the budget is spent; 3 everything worked and the answer is no: no candidate, a grave verdict, a "
    "gate that does not pass, an approval that is missing; 75 something that the run depends on has gone, and the same "
    "command goes on; 130 and 143 stopped by a signal."
)

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
console = Console()

Config = Annotated[Path, typer.Option("--config", help="Configuration file.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", metavar="A.B=VALUE", help="Replace one setting.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks, and Prefect's log.")]


def main() -> None:
    """Entry point of the console script: expected failures become one clear message."""
    try:
        check_working_folder()
        app()
    except EvenkeelError as error:
        if os.environ.get("EVENKEEL_DEBUG"):
            traceback.print_exc()
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
