"""Commands with which a person decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.config import load
from components.config.promotion import load_policy
from components.errors import EXIT_NO_CANDIDATE, InputError
from flows.cli.base import DEMO, Config, app, console
from flows.governance.registry import RegistryContext, project_store
from flows.host.git import project_root

if TYPE_CHECKING:
    from components.registry import Approval
    from flows.governance.decisions import Decision
    from flows.governance.statements import StatementOptions

Digest = Annotated[str, typer.Argument(help="Digest of the candidate, or its first digits.")]
By = Annotated[str, typer.Option("--by", help="Your name. Without a signature it is a claim, recorded as you type it.")]
Reason = Annotated[str, typer.Option("--reason", help="Why.")]
Key = Annotated[Path | None, typer.Option("--key", help="File of your private key: sign the statement.")]
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
    from flows.governance import decisions, statements

    context, options = _decision_context(config), statements.StatementOptions(by, reason, key, days)
    if only_print:
        _print(options, lambda: decisions.write_approval(context, digest, options))
        return
    with console.status("judging the candidate again"):
        found = decisions.approve_candidate(context, digest, options)
    _show(context, found)


@app.command()
def reject(
    digest: Digest, by: By, reason: Reason = "", key: Key = None, only_print: Print = False, config: Config = DEMO
) -> None:
    """Turn a candidate down. That is recorded, and final for the evidence that it was proposed with."""
    from flows.governance import decisions, statements

    context, options = _decision_context(config), statements.StatementOptions(by, reason, key)
    if only_print:
        _print(options, lambda: decisions.write_rejection(context, digest, options))
        return
    _show(context, decisions.reject_candidate(context, digest, options))


@app.command()
def promote(digest: Digest, config: Config = DEMO) -> None:
    """Promote a candidate whose approvals are all there. Exit code 3: they are not, and what is missing is said; or
    another is the champion by now."""
    from flows.governance import decisions

    context = _decision_context(config)
    with console.status("judging the candidate again"):
        found = decisions.promote_candidate(context, digest)
    _show(context, found)
    if found.record is None:
        raise typer.Exit(EXIT_NO_CANDIDATE)


@app.command()
def rollback(
    by: By,
    reason: Annotated[str, typer.Option("--reason", help="Why; a roll-back needs one.")],
    to: Annotated[
        str, typer.Option("--to", metavar="DIGEST|RECORD", help="An earlier champion; the one before this if empty.")
    ] = "",
    key: Key = None,
    days: Days = None,
    config: Config = DEMO,
) -> None:
    """Go back to a checkpoint that was the champion before. Exit code 3: approvals are missing, or another became
    champion meanwhile."""
    from flows.governance import decisions, statements

    context = _decision_context(config)
    found = decisions.roll_back(context, to, statements.StatementOptions(by, reason, key, days))
    _show(context, found)
    if found.record is None:
        raise typer.Exit(EXIT_NO_CANDIDATE)


@app.command(name="adopt-policy")
def adopt_policy(
    by: By,
    reason: Reason = "",
    key: Key = None,
    days: Days = None,
    config: Config = DEMO,
) -> None:
    """Put the project's promotion policy in force in the registry, in place of the present one. It takes
    the approvals that promoting takes, by both. Adopting confirms all records until now; see `evenkeel history`.

    Exit code 3: approvals are missing.
    """
    from components.registry import NotApproved
    from flows.governance import adoption, statements
    from flows.governance import show as show_registry
    from flows.governance.commands import DecisionCommands

    context = _decision_context(config)
    found = adoption.adopt_policy(context, statements.StatementOptions(by, reason, key, days))
    distrusted = adoption.distrusted_champion(context)
    show_registry.show_adoption(console, found, distrusted, DecisionCommands.of(context))
    if isinstance(found, NotApproved):
        raise typer.Exit(EXIT_NO_CANDIDATE)


def registry_context(config: Path) -> RegistryContext:
    """The project's registry, as a configuration names it, and the project's policy."""
    project = project_root(Path.cwd())
    return RegistryContext(project, project_store(project, load(config)), load_policy(project), str(config))


def _decision_context(config: Path) -> RegistryContext:
    """The desk to decide at: by a policy that the decision can be held against later."""
    from flows.governance.policies import check_recorded

    context = registry_context(config)
    check_recorded(context.project, context.policy)
    return context


def _print(options: StatementOptions, write: Callable[[], Approval]) -> None:
    if options.key is None:
        raise InputError("there is nothing to print without a signature", where="--print", how="name a key: --key")
    print(write().to_text())


def _show(context: RegistryContext, found: Decision) -> None:
    from flows.governance import show as show_registry
    from flows.governance.commands import DecisionCommands

    show_registry.show_decision(console, found, DecisionCommands.of(context))
    if found.superseded:
        raise typer.Exit(EXIT_NO_CANDIDATE)
