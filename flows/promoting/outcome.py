"""The state of a candidate, checked from the start, and its decision, carried out."""

from __future__ import annotations

from dataclasses import dataclass, field

from components.errors import InputError, NoCandidate
from components.registry import (
    Approval,
    Candidate,
    NotApproved,
    PromotionRecord,
    Standing,
    decided,
    promote,
    reject,
    settle,
    sound_history,
)
from components.types import Judgement
from flows.governance.comparison import judge
from flows.governance.registry import RegistryContext

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
        history, note = sound_history(context.store), ""
        rejects = said is not None and said.statement.action == "reject"
        judgement = judge(context, candidate, history, compare=not rejects)
        try:
            if rejects and (note := _rejected(context, candidate, judgement)):
                judgement = judge(context, candidate, history)
            record = promote(context.store, candidate, judgement, context.policy)
        except NotApproved as missing:
            return Undecided(judgement, missing.standing, note)
        except NoCandidate as refusal:
            if sound_history(context.store).base != history.base:  # while it was compared with the one before
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
    history = sound_history(context.store)
    made = decided(history, candidate, history.base)
    if made is not None:
        settle(context.store, history, context.policy)
    return made


def _rejected(context: RegistryContext, candidate: Candidate, judgement: Judgement) -> str:
    """Turn it down; or why what was said does not do that."""
    try:
        reject(context.store, candidate, judgement, context.policy)
    except NotApproved as missing:
        return f"The rejection does not count: {'; '.join(why for _, why in missing.standing.others)}."
    return ""
