"""Commands about keys."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.base import app, console

keys = typer.Typer(
    help="Keys to approve with, and to sign checkpoints and promotion records with.", no_args_is_help=True
)
app.add_typer(keys, name="keys")


class Purpose(StrEnum):
    """What a key is for."""

    approvals = "approvals"
    checkpoints = "checkpoints"
    registry = "registry"


@keys.command()
def new(
    name: Annotated[str, typer.Argument(help="Whose key it is; the name that the policy lists.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="File of the private key; ~/.config/evenkeel/NAME.pem if empty.")
    ] = None,
    purpose: Annotated[Purpose, typer.Option("--for", help="What it signs.")] = Purpose.approvals,
) -> None:
    """Make a key. The private key goes into a file that only you can read and that is never overwritten; the line for
    the policy is printed."""
    from flows.governance import new_key

    new_key.show(console, new_key.make(name, purpose.value, out))
