"""What a person types becomes a statement, signed where a key is given."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from components.errors import InputError
from components.registry import Approval, History, Question, Terms, sign, state
from components.registry.appending import check_in_force
from components.registry.clock import utc_now
from components.registry.standing import check_counts
from flows.governance.registry import RegistryContext


@dataclass(frozen=True)
class StatementOptions:
    """Who states something, and with what: a name, a reason, and the file of a private key or none."""

    by: str
    reason: str = ""
    key: Path | None = None
    days: int | None = None


def make_statement(
    context: RegistryContext,
    subject: Question,
    options: StatementOptions,
    history: History,
    started_by: tuple[str, ...] | None = None,
    doubtful: bool = False,
) -> Approval:
    """The statement, signed where a key is given; refused now where it would not count later."""
    check_in_force(history, context.policy)
    approval = unchecked_statement(subject, options, history, context.policy.settings.valid_days)
    check_counts(approval, Terms(subject, context.policy, utc_now(), started_by, doubtful))
    return approval


def unchecked_statement(subject: Question, options: StatementOptions, history: History, longest: int) -> Approval:
    """The statement, signed where a key is given, for ``longest`` days at most; whether it counts is not checked."""
    now = utc_now()
    history.check_clock(now)
    days = longest if options.days is None else options.days
    if not 1 <= days <= longest:
        raise InputError(f"valid for {days} days", where="--expires-days", how=f"the policy allows 1 to {longest}")
    statement = state(subject, by=options.by, reason=options.reason, at=now, valid=timedelta(days=days))
    if options.key is None:
        return Approval(statement)
    from components.registry.keys import read_approver_key  # what it is made of takes a while to load

    return sign(statement, read_approver_key(options.key))
