"""Commands that show what was decided."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from components.config import load
from components.files import write_text
from flows.cli.base import DEMO, Config, app, console
from flows.cli.deciding import registry_context
from flows.display.output import field, print_json
from flows.governance.registry import missing_registry


@app.command()
def history(
    as_json: Annotated[bool, typer.Option("--json", help="Print the records as JSON.")] = False, config: Config = DEMO
) -> None:
    """Every decision, and who is champion by them. Exit code 2: the records contradict themselves."""
    from components.registry import sound_history
    from flows.governance import policies
    from flows.governance import show as show_registry

    context = registry_context(config)
    found = sound_history(context.store)
    if as_json:
        print_json([record.to_dict() for record in found.records])
    else:
        show_registry.show_history(console, found, policies.problems(context, found))
        if folder := missing_registry(context.project, load(config)):
            console.print(field(f"there is no registry at {folder}", "yellow"), soft_wrap=True)


@app.command()
def show(
    which: Annotated[str, typer.Argument(metavar="[champion|challenger|DIGEST]", help="Which one.")] = "champion",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Write the report, with what is known since the run.")
    ] = None,
    config: Config = DEMO,
) -> None:
    """One checkpoint: its origin, the gate's result, its approvals, and the next commands."""
    from components.registry import sound_history
    from flows.governance import checkpoint, policies
    from flows.governance import show as show_registry
    from flows.governance.commands import DecisionCommands

    context = registry_context(config)
    found = checkpoint.look_up(context, which)
    if page is not None:
        from flows.promoting.report import report_of

        write_text(page, report_of(context, found))
    if as_json:
        print_json(found.to_dict())
    else:
        show_registry.show_checkpoint(console, found, DecisionCommands(context.policy.settings))
        made = found.stands_on or found.decision
        if made and (problem := policies.problems(context, sound_history(context.store)).get(made.number)):
            said = f"record {made.number} cannot be shown to be approved: {problem}"
            console.print(field(said, "bold red"), soft_wrap=True)
