"""What a candidate has come to by now: everything is looked at anew, and what is decided is carried out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from components.errors import InputError, NoCandidate
from components.registry import (
    Approval,
    Candidate,
    NotApproved,
    PromotionRecord,
    Standing,
    Store,
    decided,
    follow,
    promote,
    reject,
    sound_history,
)
from components.types import Judgement
from flows.governance.registry import Desk, judge

LONGEST = 300
"""Characters of a reason that a state shows; the record has all of it."""
NAMES = {"promoted": "Promoted", "rejected": "Rejected"}


@dataclass(frozen=True, slots=True)
class Ended:
    """Nobody needs to be asked; ``state`` and ``words`` are what the flow run ends with."""

    state: str
    words: str
    judgement: Judgement | None = None


@dataclass(frozen=True, slots=True)
class Open:
    """A person has to decide. ``note`` says why an answer that was given did not do."""

    judgement: Judgement
    standing: Standing
    note: str = ""

    def noting(self, trouble: str) -> Open:
        """The same with one more thing said."""
        return replace(self, note=" ".join(filter(None, (trouble, self.note))))


def conclude(desk: Desk, candidate: Candidate, said: Approval | None = None) -> Ended | Open:
    """Carry out what is decided, or say what is missing.

    Args:
        said: what was just answered, and is stored.
    """
    while True:
        if (made := settled(desk.store, candidate)) is not None:
            return Ended("Decided", told_of(made))
        history, note = sound_history(desk.store), ""
        rejects = said is not None and said.statement.action == "reject"
        judgement = judge(desk, candidate, history, compare=not rejects)
        try:
            if rejects and (note := _rejected(desk, candidate, judgement)):
                judgement = judge(desk, candidate, history)
            record = promote(desk.store, candidate, judgement, desk.policy)
        except NotApproved as missing:
            return Open(judgement, missing.standing, note)
        except NoCandidate as refusal:
            if sound_history(desk.store).base != history.base:  # while it was compared with the one before
                continue
            return Ended("Refused", refusal.what, judgement)
        except InputError:
            if (made := settled(desk.store, candidate)) is None:
                raise
            return Ended(NAMES.get(made.outcome, "Decided"), told_of(made), judgement)
        if record.outcome != "superseded":  # else the champion changed under the judgement: look again
            return Ended(NAMES.get(record.outcome, "Decided"), told_of(record), judgement)


def told_of(record: PromotionRecord) -> str:
    """What was decided, by whom, and why."""
    reason = " ".join(record.reason.split())
    shown = reason if len(reason) <= LONGEST else f"{reason[: LONGEST - 1]}…"
    return f"{record.says}: {shown}" if shown else record.says


def settled(store: Store, candidate: Candidate) -> PromotionRecord | None:
    """The decision that there is; the alias follows it, where a crash kept it from doing so."""
    history = sound_history(store)
    made = decided(history, candidate, history.base)
    if made is not None:
        follow(store, history)
    return made


def _rejected(desk: Desk, candidate: Candidate, judgement: Judgement) -> str:
    """Turn it down; or why what was said does not do that."""
    try:
        reject(desk.store, candidate, judgement, desk.policy)
    except NotApproved as missing:
        return f"The rejection does not count: {'; '.join(why for _, why in missing.standing.others)}."
    return ""
