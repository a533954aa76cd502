"""Commands with which a person decides."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.config import load
from components.errors import EXIT_NO_CANDIDATE, InputError
from flows.cli.base import DEMO, Config, app, console
from flows.git import project_root
from flows.registry import Desk, project_desk

if TYPE_CHECKING:
    from flows.deciding import Decision

Digest = Annotated[str, typer.Argument(help="Digest of the candidate, or its first digits.")]
By = Annotated[str, typer.Option("--by", help="Your name. Without a signature it is a claim, recorded as you type it.")]
Reason = Annotated[str, typer.Option("--reason", help="Why.")]
Key = Annotated[Path | None, typer.Option("--key", help="File of your private key: sign the statement.")]
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
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the signed approval for a form, and store nothing.")
    ] = False,
    config: Config = DEMO,
) -> None:
    """Approve a candidate; the last approval that the policy asks for makes it the champion. Exit code 3: the gate says
    no, or another became champion meanwhile."""
    from flows import deciding, stating

    pen = stating.Pen(by, reason, key, days)
    if only_print:
        if key is None:
            raise InputError("there is nothing to print without a signature", where="--print", how="name a key: --key")
        print(deciding.write_approval(_deciding(config), digest, pen).to_text())
        return
    with console.status("judging the candidate again"):
        found = deciding.approve_candidate(_deciding(config), digest, pen)
    _show(found)


@app.command()
def reject(digest: Digest, by: By, reason: Reason = "", key: Key = None, config: Config = DEMO) -> None:
    """Turn a candidate down. That is recorded, and final for the evidence that it was proposed with."""
    from flows import deciding, stating

    _show(deciding.reject_candidate(_deciding(config), digest, stating.Pen(by, reason, key)))


@app.command()
def promote(digest: Digest, config: Config = DEMO) -> None:
    """Promote a candidate whose approvals are all there. Exit code 3: they are not, and what is missing is said; or
    another is the champion by now."""
    from flows import deciding

    with console.status("judging the candidate again"):
        found = deciding.promote_candidate(_deciding(config), digest)
    _show(found)
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
    """Go back to a checkpoint that was the champion before. Exit code 3: another became champion meanwhile."""
    from flows import deciding, stating

    _show(deciding.roll_back(_deciding(config), to, stating.Pen(by, reason, key, days)))


def desk(config: Path) -> Desk:
    """The project's registry, as a configuration names it, and the project's policy."""
    return project_desk(project_root(Path.cwd()), load(config))


def _deciding(config: Path) -> Desk:
    """The desk to decide at: by a policy that the decision can be held against later."""
    from flows.policies import check_recorded

    at = desk(config)
    check_recorded(at.project, at.policy)
    return at


def _show(found: Decision) -> None:
    from flows import show_registry

    show_registry.show_decision(console, found)
    if found.gone:
        raise typer.Exit(EXIT_NO_CANDIDATE)
