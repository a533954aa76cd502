"""Commands with which a person decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from components.config import load
from components.config.promotion import load_policy
from components.errors import EXIT_NO_CANDIDATE, InputError
from components.registry import Approval, NotApproved
from flows.cli.base import DEMO, Config, app, console
from flows.governance import adoption, decisions, show
from flows.governance.commands import DecisionCommands
from flows.governance.decisions import StatementOptions
from flows.governance.policies import check_recorded
from flows.governance.registry import RegistryContext, project_store
from flows.host.git import project_root

Digest = Annotated[str, typer.Argument(help="Digest of the candidate, or its first digits.")]
By = Annotated[str, typer.Option(help="Your name. Without a signature it is a claim, recorded as you type it.")]
Reason = Annotated[str, typer.Option(help="Why.")]
Key = Annotated[Path | None, typer.Option(help="File of your private key: sign the statement.")]
Print = Annotated[bool, typer.Option("--print", help="Print the signed statement for a form, and store nothing.")]
Days = Annotated[
    int | None,
    typer.Option("--expires-days", metavar="N", help="Valid for N days, not for all that the policy allows."),
]


@app.command()
def approve(
    digest: Digest,
    by: By,
    reason: Reason = "",
    key: Key = None,
    days: Days = None,
    only_print: Print = False,
    config: Config = DEMO,
) -> None:
    """Approve a candidate; the last approval that the policy asks for makes it the champion. Exit code 3: the gate
    refuses it, or another became champion meanwhile."""
    context, options = _decision_context(config), StatementOptions(by, reason, key, days)
    if only_print:
        _print(options, lambda: decisions.write_approval(context, digest, options))
        return
    with console.status("judging the candidate again"):
        found = decisions.promote_candidate(context, digest, options)
    _show(context, found)


@app.command()
def reject(
    digest: Digest, by: By, reason: Reason = "", key: Key = None, only_print: Print = False, config: Config = DEMO
) -> None:
    """Turn a candidate down. That is recorded, and final for the evidence that it was proposed with."""
    context, options = _decision_context(config), StatementOptions(by, reason, key)
    if only_print:
        _print(options, lambda: decisions.write_rejection(context, digest, options))
        return
    _show(context, decisions.reject_candidate(context, digest, options))


@app.command()
def promote(digest: Digest, config: Config = DEMO) -> None:
    """Promote a candidate whose approvals are all there. Exit code 3: they are not, and what is missing is said; or
    another is the champion by now."""
    context = _decision_context(config)
    with console.status("judging the candidate again"):
        found = decisions.promote_candidate(context, digest)
    _show(context, found, needs_record=True)


@app.command()
def rollback(
    by: By,
    reason: Annotated[str, typer.Option(help="Why; a roll-back needs one.")],
    to: Annotated[
        str, typer.Option(metavar="DIGEST|RECORD", help="An earlier champion; the one before this if empty.")
    ] = "",
    key: Key = None,
    days: Days = None,
    config: Config = DEMO,
) -> None:
    """Go back to a checkpoint that was the champion before. Exit code 3: approvals are missing, or another became
    champion meanwhile."""
    context = _decision_context(config)
    _show(context, decisions.roll_back(context, to, StatementOptions(by, reason, key, days)), needs_record=True)


@app.command(name="adopt-policy")
def adopt_policy(by: By, reason: Reason = "", key: Key = None, days: Days = None, config: Config = DEMO) -> None:
    """Put the project's promotion policy in force in the registry, in place of the present one. It takes
    the approvals that promoting takes, by both. Adopting confirms all records until now; see `evenkeel history`.

    Exit code 3: approvals are missing.
    """
    context = _decision_context(config)
    found = adoption.adopt_policy(context, StatementOptions(by, reason, key, days))
    show.show_adoption(console, found, adoption.distrusted_champion(context), DecisionCommands.of(context))
    if isinstance(found, NotApproved):
        raise typer.Exit(EXIT_NO_CANDIDATE)


def registry_context(config: Path) -> RegistryContext:
    """The project's registry, as a configuration names it, and the project's policy."""
    project = project_root(Path.cwd())
    return RegistryContext(project, project_store(project, load(config)), load_policy(project), str(config))


def _decision_context(config: Path) -> RegistryContext:
    """The same, with a policy that the decision can be held against later."""
    context = registry_context(config)
    check_recorded(context.project, context.policy)
    return context


def _print(options: StatementOptions, write: Callable[[], Approval]) -> None:
    if options.key is None:
        raise InputError("there is nothing to print without a signature", where="--print", how="name a key: --key")
    print(write().to_text())


def _show(context: RegistryContext, found: decisions.Decision, *, needs_record: bool = False) -> None:
    """Print the result. Exit code 3: another is the champion, or there is no record where one is needed."""
    show.show_decision(console, found, DecisionCommands.of(context))
    if found.superseded or (needs_record and found.record is None):
        raise typer.Exit(EXIT_NO_CANDIDATE)
