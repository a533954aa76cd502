"""A person's decision, from what was typed to the record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
    rollback,
    rollback_question,
    sound_history,
    standing_on,
    standing_on_rollback,
    store_approval,
)
from components.registry.promotion import check_judgement, not_rejected, starter
from components.registry.rollback import target
from components.types import Judgement
from flows.registry import Desk, after_approval, after_decision, judge
from flows.stating import Pen, stated


@dataclass(frozen=True)
class Decision:
    """What came of a statement: a record, or how far the question is answered; and what else there is to say."""

    digest: str
    record: PromotionRecord | None
    standing: Standing | None = None
    told: tuple[str, ...] = ()


def write_approval(desk: Desk, digest: str, pen: Pen) -> Approval:
    """The approval of a candidate, stored nowhere.

    Raises:
        NoCandidate: the gate does not let it pass.
        InputError: it was decided already, or the approval would not count; it says why.
    """
    candidate, history = find(desk.store, digest), sound_history(desk.store)
    if made := decided(history, candidate, history.base):
        raise InputError(f"already decided: {made.says}", where=candidate.digest, how="see `evenkeel history`")
    judgement = judge(desk, candidate, history)
    return _approval(desk, candidate, history, judgement, pen)


def approve_candidate(desk: Desk, digest: str, pen: Pen) -> Decision:
    """Store a person's approval, and promote the candidate if that was the last one needed.

    Raises:
        NoCandidate: the gate does not let it pass.
        InputError: it was rejected, or the approval would not count; it says why.
    """
    candidate, history = find(desk.store, digest), sound_history(desk.store)
    if (made := decided(history, candidate, history.base)) is not None:
        return _settled(desk, candidate, history, made)
    judgement = judge(desk, candidate, history)
    approval = _approval(desk, candidate, history, judgement, pen)
    before = standing_on(desk.store, candidate, judgement, desk.policy)
    if not before.has(approval, desk.policy):
        store_approval(desk.store, approval)
    return _conclude(desk, candidate, lambda: promote(desk.store, candidate, judgement, desk.policy))


def _approval(desk: Desk, candidate: Candidate, history: History, judgement: Judgement, pen: Pen) -> Approval:
    check_judgement(judgement, candidate, desk.policy)
    if judgement.result == "inconclusive" and not pen.reason.strip():
        doubts = [f"  - {check.words}" for check in judgement.checks if check.result != "pass"]
        what = "\n".join(["the gate is inconclusive, and leaves it to a person who gives a reason:", *doubts])
        raise InputError(what, where=candidate.digest, how="look into these, then approve with --reason, or reject")
    asked = question(candidate, desk.policy, judgement.base, identify(desk.store))
    return stated(desk, asked, pen, history, starter(candidate), judgement.result == "inconclusive")


def reject_candidate(desk: Desk, digest: str, pen: Pen) -> Decision:
    """Turn a candidate down.

    Raises:
        InputError: it was promoted, or the rejection would not count; it says why.
    """
    candidate, history = find(desk.store, digest), sound_history(desk.store)
    judgement = judge(desk, candidate, history, compare=False)
    if history.decision(candidate.digest, candidate.evidence) is None:
        asked = question(candidate, desk.policy, history.base, identify(desk.store), "reject")
        store_approval(desk.store, stated(desk, asked, pen, history, starter(candidate)))
    return _conclude(desk, candidate, lambda: reject(desk.store, candidate, judgement, desk.policy))


def promote_candidate(desk: Desk, digest: str) -> Decision:
    """Promote a candidate whose approvals are all there, or say what is missing.

    Raises:
        NoCandidate: the gate does not let it pass.
        InputError: it was rejected.
    """
    candidate, history = find(desk.store, digest), sound_history(desk.store)
    if (made := decided(history, candidate, history.base)) is not None:
        return _settled(desk, candidate, history, made)
    judgement = judge(desk, candidate, history)
    return _conclude(desk, candidate, lambda: promote(desk.store, candidate, judgement, desk.policy))


def roll_back(desk: Desk, to: str, pen: Pen) -> Decision:
    """Store a person's approval of going back, and go back if that was the last one needed.

    Raises:
        InputError: there is nothing to go back to, the champion is that already, or the approval would not count.
    """
    identify(desk.store)
    history = sound_history(desk.store)
    if made := _made_already(history, to, pen):
        follow(desk.store, history)
        return Decision(made.digest, made)
    reign = target(history, to)
    if history.champion is not None and reign.digest == history.champion.digest:
        raise InputError("this is the champion already", where=reign.digest, how="name another with --to")
    asked = rollback_question(history, reign, desk.policy)
    approval = stated(desk, asked, pen, history)
    before = standing_on_rollback(desk.store, asked, desk.policy)
    if not before.has(approval, desk.policy):
        store_approval(desk.store, approval)
    candidate = read_candidate(desk.store, reign.digest)
    return _conclude(desk, candidate, lambda: rollback(desk.store, asked, desk.policy), reign.digest)


def _made_already(history: History, to: str, pen: Pen) -> PromotionRecord | None:
    """The roll-back that the champion stands on, where the same person gives the same reason: the command was repeated,
    and must not go back once more."""
    made = history.records[history.base - 1] if history.base else None
    if made is None or made.action != "rollback" or (to and target(history, to).digest != made.digest):
        return None
    said = [(one.statement.by, one.statement.reason) for one in made.approvals]
    return made if (pen.by.strip(), pen.reason.strip()) in said else None


def _settled(desk: Desk, candidate: Candidate, history: History, made: PromotionRecord) -> Decision:
    """What was decided before; where a crash kept it from being finished, that is done now."""

    def finish() -> PromotionRecord:
        follow(desk.store, history)
        return not_rejected(made)

    return _conclude(desk, candidate, finish)


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
