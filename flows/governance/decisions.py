"""A person's decision, from what was typed to the record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from components.errors import InputError
from components.registry import (
    Approval,
    Candidate,
    History,
    NotApproved,
    PromotionRecord,
    Standing,
    decided,
    find,
    follow,
    identify,
    promote,
    question,
    read_candidate,
    reject,
    rejection_question,
    rollback,
    rollback_question,
    sound_history,
    standing_on,
    standing_on_rollback,
    store_approval,
)
from components.registry.promotion import check_judgement, final, not_rejected
from components.registry.rollback import starters_of_run, target
from components.registry.starters import started_by
from components.types import Judgement
from flows.governance.registry import Desk, after_approval, after_decision, judge
from flows.governance.statements import Pen, stated


@dataclass(frozen=True)
class Decision:
    """What came of a statement: a record, or how far the question is answered; and what else there is to say.

    ``stands_on`` is the record that the champion stands on, where the decision was made before and nothing was done.
    """

    digest: str
    record: PromotionRecord | None
    standing: Standing | None = None
    told: tuple[str, ...] = ()
    stands_on: PromotionRecord | None = None

    @property
    def gone(self) -> bool:
        """Whether another is the champion than the one that was, or was to be, made it."""
        if self.record is None or self.stands_on is None:
            return self.record is not None and self.record.outcome == "superseded"
        return self.stands_on.digest != self.digest


def write_approval(desk: Desk, digest: str, pen: Pen) -> Approval:
    """The approval of a candidate, stored nowhere.

    Raises:
        NoCandidate: the gate does not let it pass.
        InputError: it was decided already, or the approval would not count; it says why.
    """
    candidate = find(desk.store, digest)
    history, found = _judged(desk, candidate)
    if isinstance(found, PromotionRecord):
        raise InputError(f"already decided: {found.says}", where=candidate.digest, how="see `evenkeel history`")
    return _approval(desk, candidate, history, found, pen)


def approve_candidate(desk: Desk, digest: str, pen: Pen) -> Decision:
    """Store a person's approval, and promote the candidate if that was the last one needed.

    Raises:
        NoCandidate: the gate does not let it pass.
        InputError: it was rejected, or the approval would not count; it says why.
    """
    candidate = find(desk.store, digest)
    history, found = _judged(desk, candidate)
    if isinstance(found, PromotionRecord):
        return _settled(desk, candidate, history, found)
    approval = _approval(desk, candidate, history, found, pen)
    before = standing_on(desk.store, candidate, found, desk.policy)
    if not before.has(approval, desk.policy):
        store_approval(desk.store, approval)
    return _conclude(desk, candidate, lambda: promote(desk.store, candidate, found, desk.policy))


def _judged(desk: Desk, candidate: Candidate) -> tuple[History, PromotionRecord | Judgement]:
    """The records, and what was decided by them; else what the gate says of it beside the champion that they name.

    It is judged again where another became the champion while the two were compared.
    """
    while True:
        history = sound_history(desk.store)
        if (made := decided(history, candidate, history.base)) is not None:
            return history, made
        if (judgement := judge(desk, candidate, history)).base == history.base:
            return history, judgement


def _approval(desk: Desk, candidate: Candidate, history: History, judgement: Judgement, pen: Pen) -> Approval:
    check_judgement(judgement, candidate, desk.policy)
    if judgement.result == "inconclusive" and not pen.reason.strip():
        doubts = [f"  - {check.words}" for check in judgement.checks if check.result != "pass"]
        what = "\n".join(["the gate is inconclusive, and leaves it to a person who gives a reason:", *doubts])
        raise InputError(what, where=candidate.digest, how="look into these, then approve with --reason, or reject")
    asked = question(candidate, judgement, desk.policy, identify(desk.store))
    by = started_by(desk.store, candidate)
    return stated(desk, asked, pen, history, by, judgement.result == "inconclusive")


def reject_candidate(desk: Desk, digest: str, pen: Pen) -> Decision:
    """Turn a candidate down.

    Raises:
        InputError: it was promoted or is the champion, or the rejection would not count; it says why.
    """
    candidate, history = find(desk.store, digest), sound_history(desk.store)
    judgement = judge(desk, candidate, history, compare=False)
    if final(history, candidate) is None:
        store_approval(desk.store, _rejection(desk, candidate, history, pen))
    return _conclude(desk, candidate, lambda: reject(desk.store, candidate, judgement, desk.policy))


def write_rejection(desk: Desk, digest: str, pen: Pen) -> Approval:
    """The rejection of a candidate, stored nowhere.

    Raises:
        InputError: it was decided already, or the rejection would not count; it says why.
    """
    candidate, history = find(desk.store, digest), sound_history(desk.store)
    if made := final(history, candidate):
        raise InputError(f"already decided: {made.says}", where=candidate.digest, how="see `evenkeel history`")
    return _rejection(desk, candidate, history, pen)


def _rejection(desk: Desk, candidate: Candidate, history: History, pen: Pen) -> Approval:
    asked = rejection_question(candidate, desk.policy, history.base, identify(desk.store))
    return stated(desk, asked, pen, history)


def promote_candidate(desk: Desk, digest: str) -> Decision:
    """Promote a candidate whose approvals are all there, or say what is missing.

    Raises:
        NoCandidate: the gate does not let it pass.
        InputError: it was rejected.
    """
    candidate = find(desk.store, digest)
    history, found = _judged(desk, candidate)
    if isinstance(found, PromotionRecord):
        return _settled(desk, candidate, history, found)
    return _conclude(desk, candidate, lambda: promote(desk.store, candidate, found, desk.policy))


def roll_back(desk: Desk, to: str, pen: Pen) -> Decision:
    """Store a person's approval of going back, and go back if that was the last one needed.

    Raises:
        InputError: there is nothing to go back to, the champion is that already, or the approval would not count.
    """
    history = sound_history(desk.store)
    if made := _made_already(history, to, pen):
        follow(desk.store, history)
        return Decision(made.digest, made, stands_on=made)
    entry = target(history, to)
    if history.champion is not None and entry.digest == history.champion.digest:
        raise InputError("this is the champion already", where=entry.digest, how="name another with --to")
    asked = replace(rollback_question(history, entry, desk.policy), registry=identify(desk.store))
    approval = stated(desk, asked, pen, history, starters_of_run(desk.store, asked))
    before = standing_on_rollback(desk.store, asked, desk.policy)
    if not before.has(approval, desk.policy):
        store_approval(desk.store, approval)
    candidate = read_candidate(desk.store, entry.digest)
    return _conclude(desk, candidate, lambda: rollback(desk.store, asked, desk.policy), entry.digest)


def _made_already(history: History, to: str, pen: Pen) -> PromotionRecord | None:
    """The roll-back that the champion stands on, where the same person gives the same reason: the command was repeated,
    and must not go back once more."""
    made = history.stands_on
    if made is None or made.action != "rollback" or (to and target(history, to).digest != made.digest):
        return None
    said = [(one.statement.by, one.statement.reason) for one in made.approvals]
    return made if (pen.by.strip(), pen.reason.strip()) in said else None


def _settled(desk: Desk, candidate: Candidate, history: History, made: PromotionRecord) -> Decision:
    """What was decided before; where a crash kept it from being finished, that is done now."""
    follow(desk.store, history)
    found = _conclude(desk, candidate, lambda: not_rejected(made))
    return replace(found, stands_on=history.stands_on)


def _conclude(
    desk: Desk, candidate: Candidate | None, act: Callable[[], PromotionRecord], digest: str = ""
) -> Decision:
    digest = candidate.digest if candidate else digest
    try:
        record = act()
    except NotApproved as missing:
        waiting = after_approval(desk, candidate) if candidate else []
        return Decision(digest, None, missing.standing, tuple(waiting))
    told = after_decision(desk, candidate, record) if candidate else []
    return Decision(digest, record, None, tuple(told))
