"""Commands that show what was decided, take checkpoints out of the registry once they are verified, and make keys."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from components.config import load
from components.errors import EXIT_NO_CANDIDATE, InputError
from components.files import write_text
from components.printing import printable
from components.registry import sound_history
from flows.cli.base import DEMO, AsJson, Config, answer, app, console
from flows.cli.deciding import registry_context
from flows.display.output import print_json, say
from flows.exporting.form import Form
from flows.governance import checkpoint, new_key, policies, verification
from flows.governance import show as show_registry
from flows.governance.commands import DecisionCommands
from flows.governance.registry import missing_registry

NAMED = typer.Argument(metavar="[champion|challenger|DIGEST]", help="Which one.")
Which = Annotated[str, NAMED]


@app.command()
def history(as_json: AsJson = False, config: Config = DEMO) -> None:
    """Every decision, and who is champion by them. Exit code 2: the records contradict themselves."""
    context = registry_context(config)
    found = sound_history(context.store)
    if as_json:
        print_json([record.to_dict() for record in found.records])
    else:
        show_registry.show_history(console, found, policies.problems(context, found))
        if folder := missing_registry(context.project, load(config)):
            say(console, f"there is no registry at {folder}", style="yellow")


@app.command()
def show(
    which: Which = "champion",
    as_json: AsJson = False,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report, with what is known since the run.")
    ] = None,
    card: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the model card.")] = None,
    config: Config = DEMO,
) -> None:
    """One checkpoint: its origin, the gate's result, its approvals, and the next commands."""
    context = registry_context(config)
    found = checkpoint.look_up(context, which)
    if page is not None:
        from flows.promoting.report import report_of

        write_text(page, report_of(context, found))
    if card is not None:
        from flows.exporting.export import card as card_of
        from flows.exporting.export import cleared

        cleared(context, which)
        write_text(card, card_of(context, found))
    if as_json:
        print_json(found.to_dict())
    else:
        show_registry.show_checkpoint(console, found, DecisionCommands.of(context))
        made = found.stands_on or found.decision
        if made and (problem := policies.problems(context, sound_history(context.store)).get(made.number)):
            say(console, f"record {made.number} cannot be shown to be approved: {problem}", style="bold red")


@app.command()
def verify(
    which: Annotated[str | None, NAMED] = None,
    every: Annotated[bool, typer.Option("--all", help="Every checkpoint that was ever proposed.")] = False,
    as_json: AsJson = False,
    config: Config = DEMO,
) -> None:
    """Do files, format, signature, evidence and records hold? Exit code 0: all do; 3: one does not, and which."""
    if every and which is not None:
        raise InputError("--all looks at every checkpoint", where=which, how="leave one of the two out")
    context = registry_context(config)
    if folder := missing_registry(context.project, load(config)):
        how = "name the right one in the configuration, or bring it back; the first candidate makes it"
        raise InputError("there is no registry, so nothing was verified", where=folder, how=how)
    if every:
        found = verification.verify_all(context)
    else:
        found = verification.verify_checkpoint(context, "champion" if which is None else which)
    answer(as_json, lambda: [asdict(one) for one in found], lambda: verification.show(console, found))
    raise typer.Exit(0 if all(one.holds for one in found) else EXIT_NO_CANDIDATE)


@app.command()
def pull(
    which: Which = "champion",
    to: Annotated[Path, typer.Option(help="A folder that is not there yet.")] = ...,  # type: ignore[assignment]
    config: Config = DEMO,
) -> None:
    """Copy a checkpoint out of the registry, once its signature is verified, and for the champion that it was approved.

    The copy has the bytes of the checkpoint and its digest; `evenkeel export` adds the model card. Exit code 2: it does
    not hold.
    """
    from flows.exporting.export import cleared

    context = registry_context(config)
    digest, _ = cleared(context, which)
    context.store.fetch_tree(digest, to)
    print(f"{printable(to)}  sha256:{digest}")


@app.command()
def export(
    which: Which = "champion",
    form: Annotated[Form, typer.Option("--format", help="What other programs load.")] = Form.safetensors,
    to: Annotated[Path, typer.Option(help="A folder that is not there yet.")] = ...,  # type: ignore[assignment]
    base: Annotated[
        str, typer.Option("--base-model", metavar="NAME", help="The base model's name on a hub, for the model card.")
    ] = "",
    config: Config = DEMO,
) -> None:
    """Write a checkpoint with its model card (README.md) for other programs, once it is verified as by `pull`.

    Exit code 2: it does not hold, or it cannot be had in this form.
    """
    from flows.exporting.export import export as write

    digest = write(registry_context(config), which, to, form, base)
    print(f"{printable(to)}  of sha256:{digest}")


ABOUT_KEYS = "Keys to approve with, and to sign checkpoints and promotion records with."
keys = typer.Typer(help=ABOUT_KEYS, no_args_is_help=True)
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
        Path | None, typer.Option(help="File of the private key; ~/.config/evenkeel/NAME.pem if empty.")
    ] = None,
    purpose: Annotated[Purpose, typer.Option("--for", help="What it signs.")] = Purpose.approvals,
) -> None:
    """Make a key. The private key goes into a file that only you can read and that is never overwritten; the line for
    the policy is printed."""
    new_key.show(console, new_key.make(name, purpose.value, out))
