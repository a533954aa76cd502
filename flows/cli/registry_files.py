"""Commands that take checkpoints out of the registry, once they are verified."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from components.config import load
from components.errors import InputError
from components.printing import printable
from flows.cli.base import DEMO, Config, app, console
from flows.cli.deciding import registry_context
from flows.display.output import print_json
from flows.governance.registry import missing_registry

Which = Annotated[str, typer.Argument(metavar="[champion|challenger|DIGEST]", help="Which one.")]


@app.command()
def verify(
    which: Which = "",
    every: Annotated[bool, typer.Option("--all", help="Every checkpoint that was ever proposed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    config: Config = DEMO,
) -> None:
    """Do files, format, signature, evidence and records hold? Exit code 0: all do; 3: one does not, and which."""
    from flows.governance import verification

    if every and which:
        raise InputError("--all looks at every checkpoint", where=which, how="leave one of the two out")
    context = registry_context(config)
    if folder := missing_registry(context.project, load(config)):
        how = "name the right one in the configuration, or bring it back; the first candidate makes it"
        raise InputError("there is no registry, so nothing was verified", where=folder, how=how)
    found = verification.verify_all(context) if every else verification.verify_checkpoint(context, which or "champion")
    if as_json:
        print_json([one.to_dict() for one in found.found])
    else:
        verification.show(console, found)
    raise typer.Exit(found.exit_code)


@app.command()
def pull(
    which: Which = "champion",
    to: Annotated[Path, typer.Option("--to", help="A folder that is not there yet.")] = ...,  # type: ignore[assignment]
    config: Config = DEMO,
) -> None:
    """Copy a checkpoint out of the registry, once its signature is verified, and for the champion that it was approved.

    Exit code 2: it does not hold.
    """
    from components.registry import sound_history
    from flows.governance.checkpoint import find_candidate
    from flows.governance.policies import check_champion
    from flows.governance.signers import verified

    context = registry_context(config)
    if which == "champion":
        check_champion(context, sound_history(context.store))
    digest = find_candidate(context, which).digest
    verified(context.project, context.store, digest)
    context.store.fetch_tree(digest, to)
    print(f"{printable(to)}  sha256:{digest}")
