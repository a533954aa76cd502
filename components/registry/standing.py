"""Which approvals count, and for each that does not, why. Pure: nothing is read, and the time is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from components.config.people import BETWEEN, person
from components.config.promotion import Policy
from components.errors import InputError
from components.registry.approvals import Approval, signature_holds
from components.registry.clock import SKEW, parse
from components.registry.identity import elsewhere
from components.registry.statements import Question

RENEWED = timedelta(hours=1)
"""An approval that expires so much later than another of the same person is a renewal, and no command that was typed
twice."""


@dataclass(frozen=True)
class Standing:
    """How far a question is answered. ``others`` are the approvals that do not count, each with the reason."""

    question: Question
    needed: int
    counted: tuple[Approval, ...]
    others: tuple[tuple[Approval, str], ...]

    @property
    def missing(self) -> int:
        """Approvals that are still needed."""
        return max(0, self.needed - len(self.counted))

    @property
    def met(self) -> bool:
        return self.missing == 0

    def has(self, approval: Approval, policy: Policy) -> bool:
        """Whether one of the same person counts already that says as much: for as long but for `RENEWED`, and why."""
        said = approval.statement
        until = parse(said.expires) - RENEWED
        same = (one.statement for one in self.counted if _identity(one, policy) == _identity(approval, policy))
        return any(parse(one.expires) > until and (not said.reason or one.reason == said.reason) for one in same)

    @property
    def by(self) -> str:
        """Who approved, in the order of their approvals."""
        return BETWEEN.join(one.statement.by for one in self.counted)

    def lines(self) -> list[str]:
        """Sentences: the approvals that count, and why each other one does not."""
        names = f": {self.by}" if self.counted else ""
        said = [f"{len(self.counted)} of {self.needed} approvals{names}"]
        return said + [
            f"the one by {one.statement.by} ({one.statement.at}) does not count: {why}" for one, why in self.others
        ]


@dataclass(frozen=True)
class Terms:
    """What an approval is held against.

    ``starter`` are the names of the one who started the run, None where they were not recorded; ``doubtful`` says that
    the gate is inconclusive, so that everyone who approves has to give a reason; with ``own_counts`` it does not matter
    who started the run; ``rejected`` is when the checkpoint was last rejected, on whatever evidence.
    """

    question: Question
    policy: Policy
    now: datetime
    starter: tuple[str, ...] | None = None
    doubtful: bool = False
    own_counts: bool = False
    rejected: datetime | None = None


def standing(approvals: Iterable[Approval], terms: Terms) -> Standing:
    """Hold approvals against the terms; of several by one person that count, the one that is valid longest is taken."""
    relevant = [approval for approval in approvals if approval.statement.action == terms.question.action]
    counted: list[Approval] = []
    others: list[tuple[Approval, str]] = []
    for approval in sorted(relevant, key=lambda one: parse(one.statement.expires), reverse=True):
        why = _problem(approval, terms) or _again(approval, counted, terms.policy)
        if why:
            others.append((approval, why))
        else:
            counted.append(approval)
    needed = terms.policy.settings.quorum(terms.question.action).approvals
    return Standing(terms.question, needed, tuple(sorted(counted, key=relevant.index)), tuple(others))


def check_counts(approval: Approval, terms: Terms) -> None:
    """Refuse an approval that would not count if it were the only one.

    Raises:
        InputError: it states why.
    """
    if others := standing([approval], terms).others:
        what = f"this would not count: {others[0][1]}"
        how = "nothing was recorded; do what it says, or ask another approver"
        raise InputError(what, where=terms.question.digest, how=how)


def _problem(approval: Approval, terms: Terms) -> str:
    """Why an approval does not count, whatever other approvals there are; "" where it does."""
    checks = (_question, _time, _rejected, _listed, _signature, _own, _reason)
    return next((why for check in checks if (why := check(approval, terms))), "")


def _question(approval: Approval, terms: Terms) -> str:
    said, question = approval.statement, terms.question
    if said.registry != question.registry:
        again = "reject" if question.action == "reject" else "approve"
        return f"it was {elsewhere(said.registry, question.registry)}; {again} again"
    if said.digest != question.digest:
        return f"it is for another checkpoint, {said.digest[:12]}"
    if said.evidence != question.evidence:
        return "it was given on other evidence; read the present evidence and approve again"
    if question.action == "reject":  # a rejection stands, even if policy or champion have changed since
        return ""
    if said.policy != question.policy:
        return "the policy was another when it was given; approve again under the present one"
    if said.base != question.base:
        then, now = _record(said.base), _record(question.base)
        return f"the champion stood on {then} when it was given and stands on {now} now; approve again"
    if said.gate != question.gate:
        return "the gate says something else than when it was given; read what it says now and approve again"
    return ""


def _record(number: int) -> str:
    return f"record {number}" if number else "no record"


def _time(approval: Approval, terms: Terms) -> str:
    if terms.question.action == "reject":
        return ""
    at, expires = parse(approval.statement.at), parse(approval.statement.expires)
    days = terms.policy.settings.valid_days
    if terms.now + SKEW < at:
        return f"it is not valid before {approval.statement.at}; is this machine's clock right?"
    if terms.now >= expires:
        return f"it expired at {approval.statement.expires}; approve again"
    if expires - at > timedelta(days=days):
        return f"it is valid for longer than the {days} days that the policy allows; approve again"
    return ""


def _rejected(approval: Approval, terms: Terms) -> str:
    if terms.rejected is None or terms.question.action != "promote" or parse(approval.statement.at) > terms.rejected:
        return ""
    return "the checkpoint was rejected since; read why (evenkeel history), and approve again"


def _signature(approval: Approval, terms: Terms) -> str:
    settings = terms.policy.settings
    if not approval.signed:
        wanted = settings.quorum(terms.question.action).signed
        return "it is not signed, and the policy requires signatures; approve with --key" if wanted else ""
    if not signature_holds(approval):
        return "the signature is not one of its key over this statement"
    if not settings.approvers:
        return ""
    owner = next((name for name, one in settings.approvers.items() if one.key == approval.key), None)
    if owner is None:
        return "its key is not listed in the policy (approvers)"
    if owner != settings.approver(approval.statement.by):
        return f"it is signed with the key of {owner}; approve under that name"
    return ""


def _listed(approval: Approval, terms: Terms) -> str:
    settings = terms.policy.settings
    if settings.approvers and settings.approver(approval.statement.by) is None:
        return f"the policy lists other approvers: {', '.join(settings.approvers)}"
    return ""


def _own(approval: Approval, terms: Terms) -> str:
    if terms.own_counts or terms.policy.settings.own_approval(terms.question.action):
        return ""
    if not terms.starter:
        return (
            "it is not recorded who started the run, and the policy does not count that person's approval; "
            "`own_approval: true` there counts everybody's"
        )
    if _identity(approval, terms.policy) in {_person(name, terms.policy) for name in terms.starter}:
        return "it is by the one who started the run; somebody else has to approve"
    return ""


def _reason(approval: Approval, terms: Terms) -> str:
    if approval.statement.reason:
        return ""
    if terms.question.action == "rollback":
        return "it gives no reason; a roll-back needs one (--reason)"
    return "the gate is inconclusive and it gives no reason (--reason)" if terms.doubtful else ""


def _again(approval: Approval, counted: Sequence[Approval], policy: Policy) -> str:
    """Whether the same person, or the same key under another name, is counted already."""
    for one in counted:
        if _identity(one, policy) == _identity(approval, policy):
            return "the same approver is counted already"
        if approval.key is not None and one.key == approval.key:
            return f"its key is counted already, under the name {one.statement.by}"
    return ""


def _identity(approval: Approval, policy: Policy) -> str:
    return _person(approval.statement.by, policy)


def _person(name: str, policy: Policy) -> str:
    """One text for all names of a person."""
    return person(policy.settings.approver(name) or name)
