"""The form that a person fills in; the answer, which becomes a statement of that person, and is kept; and the
candidate's decision, checked from the start and carried out.

The server holds the form to its schema before it lets the run go on. No field that decides has a default: an empty
form, and a resumption without a form, decide nothing. Nothing is filled in beforehand either, because Prefect takes a
field that is for one that need not be filled in. Whether the statement counts is for the policy to say. A signed one is
pasted, and anything can be: what does not count is not kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from prefect.input import RunInput
from pydantic import ConfigDict, Field, ValidationError

from components import registry
from components.config.people import person
from components.config.promotion import Action, PromotionPolicy
from components.errors import InputError, NoCandidate
from components.registry import Approval, Candidate, NotApproved, PromotionRecord, Question, Standing, Statement, Terms
from components.registry.clock import utc_now
from components.registry.standing import check_counts
from components.registry.starters import started_by
from components.types import Judgement
from flows.governance.comparison import judge
from flows.governance.registry import RegistryContext
from flows.promoting.waiting_runs import Request

NOT_BLANK = r"\S"


class Decision(RunInput):
    """Approve or reject, by whom, and why."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["approve", "reject"] = Field(description="approve makes it the champion; reject turns it down.")
    by: str = Field(
        title="Your name",
        min_length=1,
        max_length=200,
        pattern=NOT_BLANK,
        description="Recorded as you type it.",
    )
    reason: str = Field("", max_length=4000, description="Why. It is recorded.")


class SignedDecision(Decision):
    """The same where the policy requires signatures: a typed name proves nothing."""

    signed_approval: str = Field(
        "",
        max_length=20_000,
        description="What the command above prints. Its reason counts, not the one typed here.",
    )


class ReasonedDecision(Decision):
    """The same where the gate leaves something to the person."""

    reason: str = Field(min_length=1, max_length=4000, pattern=NOT_BLANK, description="Why. It is recorded.")


def form(signed: bool, doubtful: bool, shown: str) -> type[Decision]:
    """The form with ``shown`` (Markdown) above it.

    Args:
        signed: the policy asks for signatures; a signed statement has its reason in itself.
        doubtful: the gate leaves something to the person, who then has to say why.
    """
    kind = SignedDecision if signed else ReasonedDecision if doubtful else Decision
    return kind.with_initial_data(description=shown)


def filled(values: Any) -> SignedDecision:
    """What a person filled in, with or without a signature.

    Raises:
        InputError: it is no decision.
    """
    try:
        return SignedDecision.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the form"
        raise InputError(f"not a decision: {first['msg']}", where=where, how="fill in the form again") from error


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
    subject = request.question(ACTIONS[form.decision], registry.identify(context.store))
    if text := form.signed_approval.strip():
        approval = registry.read_approval(text, where=FIELD)
        _check_same(approval, subject, form, policy)
        if context.store.get(approval.stored_under) is None:
            base = registry.sound_history(context.store).base  # as things are now, not as when it was requested
            now = replace(subject, evidence=candidate.evidence, policy=context.policy.sha256, base=base)
            check_counts(approval, Terms(now, context.policy, utc_now(), started_by(context.store, candidate)))
    elif policy.quorum(subject.action).signed:
        how = "make one with the command that is shown above the form and --print, and paste what it prints"
        raise InputError("the policy asks for a signature, and none was given", where=FIELD, how=how)
    else:
        approval = Approval(_stated(subject, form, at, timedelta(days=policy.valid_days)))
    return registry.store_approval(context.store, approval)


def _stated(subject: Question, form: Decision, at: datetime, valid: timedelta) -> Statement:
    try:
        return registry.state(subject, by=form.by, reason=form.reason, at=at, valid=valid)
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


LONGEST = 300
"""Characters of a reason that a state shows; the record has all of it."""
NAMES = {"promoted": "Promoted", "rejected": "Rejected"}


@dataclass(frozen=True, slots=True)
class Concluded:
    """No approval is needed; the flow run ends in ``state`` with the message ``words``. ``record`` is the decision."""

    state: str
    words: str
    judgement: Judgement | None = None
    record: PromotionRecord | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Undecided:
    """A person has to decide. ``note``: why an earlier answer was not accepted."""

    judgement: Judgement
    standing: Standing
    note: str = ""


def conclude(context: RegistryContext, candidate: Candidate, said: Approval | None = None) -> Concluded | Undecided:
    """Carry out what is decided, or say what is missing. ``said`` is what was just answered, and is stored."""
    while True:
        if (made := existing_decision(context, candidate)) is not None:
            return Concluded("Decided", describe(made), record=made)
        history, note = registry.sound_history(context.store), ""
        rejects = said is not None and said.statement.action == "reject"
        judgement = judge(context, candidate, history, compare=not rejects)
        try:
            if rejects and (note := _rejected(context, candidate, judgement)):
                judgement = judge(context, candidate, history)
            record = registry.promote(context.store, candidate, judgement, context.policy)
        except NotApproved as missing:
            return Undecided(judgement, missing.standing, note)
        except NoCandidate as refusal:
            if registry.sound_history(context.store).base != history.base:  # while it was compared with the one before
                continue
            return Concluded("Refused", refusal.what, judgement)
        except InputError:
            if (made := existing_decision(context, candidate)) is None:
                raise
            return Concluded(NAMES.get(made.outcome, "Decided"), describe(made), judgement, made)
        if record.outcome != "superseded":  # else the champion changed under the judgement: look again
            return Concluded(NAMES.get(record.outcome, "Decided"), describe(record), judgement, record)


def describe(record: PromotionRecord) -> str:
    """What was decided, by whom, and why."""
    reason = " ".join(record.reason.split())
    shown = reason if len(reason) <= LONGEST else f"{reason[: LONGEST - 1]}…"
    return f"{record.says}: {shown}" if shown else record.says


def existing_decision(context: RegistryContext, candidate: Candidate) -> PromotionRecord | None:
    """The decision that there is; what a crash kept from being done after it is done now."""
    history = registry.sound_history(context.store)
    made = registry.decided(history, candidate, history.base)
    if made is not None:
        registry.settle(context.store, history, context.policy)
    return made


def _rejected(context: RegistryContext, candidate: Candidate, judgement: Judgement) -> str:
    """Turn it down; or why what was said does not do that."""
    try:
        registry.reject(context.store, candidate, judgement, context.policy)
    except NotApproved as missing:
        return f"The rejection does not count: {'; '.join(why for _, why in missing.standing.others)}."
    return ""
