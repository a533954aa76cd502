"""What a person types becomes a statement, signed where a key is given."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from components.errors import InputError
from components.registry import Approval, History, Question, Statement, Terms, sign, state
from components.registry.appending import check_in_force
from components.registry.clock import utc_now
from components.registry.standing import check_counts
from flows.governance.registry import Desk


@dataclass(frozen=True)
class Pen:
    """Who states something, and with what: a name, a reason, and the file of a private key or none."""

    by: str
    reason: str = ""
    key: Path | None = None
    days: int | None = None


def stated(
    desk: Desk,
    asked: Question,
    pen: Pen,
    history: History,
    started_by: tuple[str, ...] | None = None,
    doubtful: bool = False,
) -> Approval:
    """The statement, signed where a key is given; refused now where it would not count later."""
    check_in_force(history, desk.policy)
    approval = written(asked, pen, history, desk.policy.settings.valid_days)
    check_counts(approval, Terms(asked, desk.policy, utc_now(), started_by, doubtful))
    return approval


def written(asked: Question, pen: Pen, history: History, longest: int) -> Approval:
    """The statement, signed where a key is given; whether it counts is not looked at.

    Args:
        longest: days that the policy allows.
    """
    now = utc_now()
    history.check_clock(now)
    days = longest if pen.days is None else pen.days
    if not 1 <= days <= longest:
        raise InputError(f"valid for {days} days", where="--expires-days", how=f"the policy allows 1 to {longest}")
    statement = state(asked, by=pen.by, reason=pen.reason, at=now, valid=timedelta(days=days))
    return _signed(statement, pen.key) if pen.key else Approval(statement)


def _signed(statement: Statement, key: Path) -> Approval:
    from components.registry.keys import read_approver_key  # what it is made of takes a while to load

    return sign(statement, read_approver_key(key))
