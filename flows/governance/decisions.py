"""A person's decision, from the command to the record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from components import registry
from components.errors import InputError
from components.registry import Approval, Candidate, History, NotApproved, PromotionRecord, Question, Standing, Terms
from components.registry.appending import check_in_force
from components.registry.clock import utc_now
from components.registry.promotion import check_judgement, final, not_rejected
from components.registry.rollback import starters_of_run, target
from components.registry.standing import check_counts
from components.registry.starters import started_by
from components.types import Judgement
from flows.governance.comparison import judge
from flows.governance.model_registry import register_champion
from flows.governance.registry import RegistryContext
from flows.promoting.waiting_runs import resume


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
    statement = registry.state(subject, by=options.by, reason=options.reason, at=now, valid=timedelta(days=days))
    if options.key is None:
        return Approval(statement)
    from components.registry.keys import read_approver_key  # what it is made of takes a while to load

    return registry.sign(statement, read_approver_key(options.key))


@dataclass(frozen=True)
class Decision:
    """The result of a statement: a record, or the approvals so far; and notes to print.

    ``stands_on`` is the record that made the present champion, where the decision existed before and nothing was done.
    ``doubtful``: the gate is inconclusive, so that every approval needs a reason.
    """

    digest: str
    record: PromotionRecord | None
    standing: Standing | None = None
    notes: tuple[str, ...] = ()
    stands_on: PromotionRecord | None = None
    doubtful: bool = False

    @property
    def superseded(self) -> bool:
        """Whether another checkpoint is the champion now."""
        if self.record is None or self.stands_on is None:
            return self.record is not None and self.record.outcome == "superseded"
        return self.stands_on.digest != self.digest


def write_approval(context: RegistryContext, digest: str, options: StatementOptions) -> Approval:
    """The approval of a candidate, stored nowhere.

    Raises:
        NoCandidate: the gate does not let it pass.
        InputError: it was decided already, or the approval would not count.
    """
    candidate = registry.find(context.store, digest)
    history, found = _judged(context, candidate)
    if isinstance(found, PromotionRecord):
        raise InputError(f"already decided: {found.says}", where=candidate.digest, how="see `evenkeel history`")
    return _approval(context, candidate, history, found, options)


def promote_candidate(context: RegistryContext, digest: str, options: StatementOptions | None = None) -> Decision:
    """Promote a candidate whose approvals are all there, or say what is missing. With ``options`` an approval is stored
    first.

    Raises:
        NoCandidate: the gate does not let it pass.
        InputError: it was rejected, or the approval would not count.
    """
    candidate = registry.find(context.store, digest)
    history, found = _judged(context, candidate)
    if isinstance(found, PromotionRecord):
        registry.settle(context.store, history, context.policy)  # where a crash interrupted it after its record
        earlier = _conclude(context, candidate.digest, partial(not_rejected, found))
        return replace(earlier, stands_on=history.stands_on)
    if options is not None:
        approval = _approval(context, candidate, history, found, options)
        before = registry.standing_on(context.store, candidate, found, context.policy)
        if not before.has(approval, context.policy):
            registry.store_approval(context.store, approval)
    made = _conclude(
        context, candidate.digest, lambda: registry.promote(context.store, candidate, found, context.policy)
    )
    return replace(made, doubtful=found.result == "inconclusive")


def _judged(context: RegistryContext, candidate: Candidate) -> tuple[History, PromotionRecord | Judgement]:
    """The records, and their decision about the candidate or else the gate's judgement of it.

    The candidate is judged again if another one became the champion during the comparison.
    """
    while True:
        history = registry.sound_history(context.store)
        if (made := registry.decided(history, candidate, history.base)) is not None:
            return history, made
        if (judgement := judge(context, candidate, history)).base == history.base:
            return history, judgement


def _approval(
    context: RegistryContext, candidate: Candidate, history: History, judgement: Judgement, options: StatementOptions
) -> Approval:
    check_judgement(judgement, candidate, context.policy)
    if judgement.result == "inconclusive" and not options.reason.strip():
        doubts = [f"  - {check.words}" for check in judgement.checks if check.result != "pass"]
        what = "\n".join(["the gate is inconclusive, and leaves it to a person who gives a reason:", *doubts])
        raise InputError(what, where=candidate.digest, how="look into these, then approve with --reason, or reject")
    subject = registry.question(candidate, judgement, context.policy, registry.identify(context.store))
    by = started_by(context.store, candidate)
    return make_statement(context, subject, options, history, by, judgement.result == "inconclusive")


def reject_candidate(context: RegistryContext, digest: str, options: StatementOptions) -> Decision:
    """Turn a candidate down.

    Raises:
        InputError: it was promoted or is the champion, or the rejection would not count.
    """
    candidate, history = registry.find(context.store, digest), registry.sound_history(context.store)
    judgement = judge(context, candidate, history, compare=False)
    if final(history, candidate) is None:
        registry.store_approval(context.store, _rejection(context, candidate, history, options))
    return _conclude(
        context, candidate.digest, lambda: registry.reject(context.store, candidate, judgement, context.policy)
    )


def write_rejection(context: RegistryContext, digest: str, options: StatementOptions) -> Approval:
    """The rejection of a candidate, stored nowhere.

    Raises:
        InputError: it was decided already, or the rejection would not count.
    """
    candidate, history = registry.find(context.store, digest), registry.sound_history(context.store)
    if made := final(history, candidate):
        raise InputError(f"already decided: {made.says}", where=candidate.digest, how="see `evenkeel history`")
    return _rejection(context, candidate, history, options)


def _rejection(context: RegistryContext, candidate: Candidate, history: History, options: StatementOptions) -> Approval:
    subject = registry.rejection_question(candidate, context.policy, history.base, registry.identify(context.store))
    return make_statement(context, subject, options, history)


def roll_back(context: RegistryContext, to: str, options: StatementOptions) -> Decision:
    """Store a person's approval of going back, and go back if that was the last one needed.

    Raises:
        InputError: there is nothing to go back to, the champion is that already, or the approval would not count.
    """
    history = registry.sound_history(context.store)
    if made := _repeated_rollback(history, to, options):
        registry.settle(context.store, history, context.policy)
        return Decision(made.digest, made, stands_on=made)
    entry = target(history, to)
    if history.champion is not None and entry.digest == history.champion.digest:
        raise InputError("this is the champion already", where=entry.digest, how="name another with --to")
    subject = replace(
        registry.rollback_question(history, entry, context.policy), registry=registry.identify(context.store)
    )
    approval = make_statement(context, subject, options, history, starters_of_run(context.store, subject))
    before = registry.standing_on_rollback(context.store, subject, context.policy)
    if not before.has(approval, context.policy):
        registry.store_approval(context.store, approval)
    return _conclude(context, entry.digest, lambda: registry.rollback(context.store, subject, context.policy))


def _repeated_rollback(history: History, to: str, options: StatementOptions) -> PromotionRecord | None:
    """The rollback that made the present champion, if the same person gave the same reason: the command was repeated
    and must not roll back a second time."""
    made = history.stands_on
    if made is None or made.action != "rollback" or (to and target(history, to).digest != made.digest):
        return None
    said = [(one.statement.by, one.statement.reason) for one in made.approvals]
    return made if (options.by.strip(), options.reason.strip()) in said else None


def _conclude(context: RegistryContext, digest: str, act: Callable[[], PromotionRecord]) -> Decision:
    """Act, register a new champion with MLflow, and resume the suspended flow runs that wait for this. A failure of
    the last two undoes nothing."""
    try:
        record, standing = act(), None
        why, then = "decided at a terminal", "resumes, and ends"
    except NotApproved as missing:
        record, standing = None, missing.standing
        why, then = "approved at a terminal; that is not enough yet", "asks again"
    registered = register_champion(context.store, record) if record is not None else []
    names = resume(context.project, digest, why)
    return Decision(digest, record, standing, (*registered, *(f"flow run {name} {then}" for name in names)))
