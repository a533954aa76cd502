"""An answer becomes a statement of a person, which is kept. Whether it counts is for the policy to say.

A signed one is pasted, and anything can be: what does not count is not kept.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from components.config.people import person
from components.config.promotion import Action, PromotionPolicy
from components.errors import InputError
from components.registry import (
    Approval,
    Candidate,
    Question,
    Statement,
    Terms,
    identify,
    read_approval,
    sound_history,
    state,
    store_approval,
)
from components.registry.clock import utc_now
from components.registry.standing import check_counts
from components.registry.starters import started_by
from flows.governance.registry import RegistryContext
from flows.promoting.form import Decision, filled
from flows.promoting.request import Request

ACTIONS: dict[str, Action] = {"approve": "promote", "reject": "reject"}
FIELD = "signed_approval"


def store_answer(
    context: RegistryContext, candidate: Candidate, request: Request, values: Any, at: datetime
) -> Approval:
    """Keep what the form of ``request`` sent; the same ``values`` again, sent at that time, are the same statement.

    Raises:
        InputError: it answers nothing: not a decision, or not of this person about this candidate; or what was pasted
            does not count.
    """
    form, policy = filled(values), context.policy.settings
    subject = request.question(ACTIONS[form.decision], identify(context.store))
    if text := form.signed_approval.strip():
        approval = read_approval(text, where=FIELD)
        _check_same(approval, subject, form, policy)
        if context.store.get(approval.stored_under) is None:
            _check_counts(context, candidate, subject, approval)
    elif policy.quorum(subject.action).signed:
        how = "make one with the command that is shown above the form and --print, and paste what it prints"
        raise InputError("the policy asks for a signature, and none was given", where=FIELD, how=how)
    else:
        approval = Approval(_stated(subject, form, at, timedelta(days=policy.valid_days)))
    return store_approval(context.store, approval)


def _check_counts(context: RegistryContext, candidate: Candidate, subject: Question, approval: Approval) -> None:
    """Raise unless it counts now, which may differ from when it was requested."""
    base = sound_history(context.store).base
    now = replace(subject, evidence=candidate.evidence, policy=context.policy.sha256, base=base)
    check_counts(approval, Terms(now, context.policy, utc_now(), started_by(context.store, candidate)))


def _stated(subject: Question, form: Decision, at: datetime, valid: timedelta) -> Statement:
    try:
        return state(subject, by=form.by, reason=form.reason, at=at, valid=valid)
    except InputError as error:
        raise InputError(error.what, where="the form", how="fill in the form again") from error


def _check_same(approval: Approval, subject: Question, form: Decision, policy: PromotionPolicy) -> None:
    """Raise unless the signed statement agrees with the form."""
    statement = approval.statement
    if statement.digest != subject.digest:
        raise _other(f"it is about the checkpoint {statement.digest[:12]}, and this is {subject.digest[:12]}")
    if statement.action != subject.action:
        raise _other(f"it says {statement.action}, and the form says {form.decision}")
    if _who(statement.by, policy) != _who(form.by, policy):
        raise _other("it is in another name than the form")


def _other(what: str) -> InputError:
    return InputError(
        f"the signed approval is of something else: {what}", where=FIELD, how="paste the one made for this"
    )


def _who(name: str, policy: PromotionPolicy) -> str:
    return policy.approver(name) or person(name)
