"""Promote a candidate, or turn it down: the approvals that stand, held against what is so now, become a record.

An approval is stored first, then a record is appended, then the alias follows. Each of these happens once however often
it is tried, so after a crash in between the same command, or any other one, goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from components.config.promotion import Policy
from components.errors import InputError, NoCandidate
from components.registry.aliases import sound_history
from components.registry.appending import append, check_in_force, make_record, settle
from components.registry.approvals import Approval, approvals_of
from components.registry.authorization import check_approved
from components.registry.base import Store
from components.registry.candidates import Candidate
from components.registry.clock import Clock, parse, utc_now
from components.registry.history import History, read_history
from components.registry.identity import identity
from components.registry.records import PromotionRecord, gate_of, verdict
from components.registry.standing import Standing, Terms, standing
from components.registry.starters import started_by
from components.registry.statements import Question
from components.registry.stored import recheck
from components.types import GateCheck, Judgement


class NotApproved(NoCandidate):
    """Approvals that the policy requires are missing (exit code 3)."""

    def __init__(self, standing: Standing, how: str) -> None:
        what = "\n  - ".join(standing.lines())
        super().__init__(f"not approved yet: {what}", where=standing.question.digest, how=how)
        self.standing = standing


def question(candidate: Candidate, judgement: Judgement, policy: Policy, registry: str) -> Question:
    """Whether to promote a candidate of which the gate says this, in a registry of this identity."""
    said = verdict(gate_of(judgement))
    return Question("promote", candidate.digest, candidate.evidence, policy.sha256, judgement.base, registry, said)


def rejection_question(candidate: Candidate, policy: Policy, base: int, registry: str) -> Question:
    """Whether to turn a candidate down, whatever the gate says of it."""
    return Question("reject", candidate.digest, candidate.evidence, policy.sha256, base, registry)


def standing_on(
    store: Store, candidate: Candidate, judgement: Judgement, policy: Policy, clock: Clock = utc_now
) -> Standing:
    """How far the candidate is approved, by what is stored; raises InputError as `started_by`."""
    approvals = approvals_of(store, candidate.digest)
    proposal = question(candidate, judgement, policy, identity(store))
    return standing(approvals, _terms(store, candidate, proposal, judgement.result, policy, clock()))


def standing_unjudged(store: Store, candidate: Candidate, policy: Policy, clock: Clock = utc_now) -> Standing | None:
    """The same without judging the candidate again: taken that the gate says what it said at the last approval. None:
    there is no approval."""
    approvals = [one for one in approvals_of(store, candidate.digest) if one.statement.action == "promote"]
    if not approvals:
        return None
    gate, base = max(approvals, key=lambda one: parse(one.statement.at)).statement.gate, read_history(store).base
    proposal = Question("promote", candidate.digest, candidate.evidence, policy.sha256, base, identity(store), gate)
    return standing(approvals, _terms(store, candidate, proposal, str(candidate.gate["result"]), policy, clock()))


def _terms(store: Store, candidate: Candidate, proposal: Question, result: str, policy: Policy, now: datetime) -> Terms:
    return Terms(
        proposal,
        policy,
        now,
        started_by(store, candidate),
        doubtful=result == "inconclusive",
        rejected=_rejected_at(read_history(store), candidate),
    )


def _rejected_at(history: History, candidate: Candidate) -> datetime | None:
    """When the checkpoint was last turned down, on whatever evidence; approvals from before do not count."""
    rejection = history.rejection(candidate.digest)
    return parse(rejection.at) if rejection else None


def final(history: History, candidate: Candidate) -> PromotionRecord | None:
    """What was decided for good about a candidate: on its evidence, or on any where it is the champion."""
    made, champion = history.decision(candidate.digest, candidate.evidence), history.stands_on
    return champion if made is None and champion is not None and champion.digest == candidate.digest else made


def decided(history: History, candidate: Candidate, base: int) -> PromotionRecord | None:
    """What was decided about a candidate: for good, or against the champion of record ``base``."""
    return final(history, candidate) or history.tried("promote", candidate.digest, candidate.evidence, base)


def promote(
    store: Store, candidate: Candidate, judgement: Judgement, policy: Policy, clock: Clock = utc_now
) -> PromotionRecord:
    """Make a candidate the champion, if the gate lets it pass and the stored approvals are enough.

    Idempotent: what was decided before is returned, and finished where a crash kept it from being finished. Where the
    champion is another by now than the one that the candidate was judged against, the record says "superseded", and the
    candidate can be judged and approved again.

    Raises:
        NoCandidate: the gate failed.
        NotApproved: approvals are missing; it states which do not count, and why.
        InputError: the candidate was rejected, the judgement is not about it, what is stored is not what was judged,
            as `started_by`, the clock was set back, or the registry contradicts itself.
    """
    history = sound_history(store)
    if (made := decided(history, candidate, judgement.base)) is not None:
        settle(store, history, policy)
        return not_rejected(made)
    check_in_force(history, policy)
    check_judgement(judgement, candidate, policy)
    if (champion := history.stands_on) is not None:
        check_approved(champion, policy)
    recheck(store, candidate.digest, candidate.evidence, policy)
    registry = identity(store)
    proposal = question(candidate, judgement, policy, registry)
    terms = _terms(store, candidate, proposal, judgement.result, policy, clock())

    def write(history: History) -> PromotionRecord:
        if (made := decided(history, candidate, judgement.base)) is not None:
            return not_rejected(made)
        history.check_clock(now := clock())
        approvals = approvals_of(store, candidate.digest)
        refusal = _rejections(approvals, candidate, policy, now, registry)
        if refusal.met:  # stated, and by a crash not recorded
            return make_record(history, refusal, gate_of(judgement), policy, now)
        found = standing(approvals, replace(terms, now=now, rejected=_rejected_at(history, candidate)))
        if not found.met:
            raise NotApproved(found, f"evenkeel approve {candidate.digest[:12]} --by YOUR-NAME")
        return make_record(history, found, gate_of(judgement), policy, now)

    return not_rejected(append(store, history, write, policy))


def reject(
    store: Store, candidate: Candidate, judgement: Judgement, policy: Policy, clock: Clock = utc_now
) -> PromotionRecord:
    """Turn a candidate down for good, on this evidence, where somebody who may has stated that. Idempotent.

    Raises:
        NotApproved: no one who may has stated it; the message gives the reason.
        InputError: the candidate was promoted or is the champion, the clock was set back, or the registry
            contradicts itself.
    """
    history = sound_history(store)
    approvals, registry = approvals_of(store, candidate.digest), identity(store)

    def write(history: History) -> PromotionRecord:
        if (made := final(history, candidate)) is not None:
            return made
        history.check_clock(now := clock())
        found = _rejections(approvals, candidate, policy, now, registry)
        if not found.met:
            raise NotApproved(found, f"evenkeel reject {candidate.digest[:12]} --by YOUR-NAME --reason WHY")
        return make_record(history, found, gate_of(judgement), policy, now)

    made = append(store, history, write, policy)
    if made.action != "reject":
        how = "a decision is final; `evenkeel rollback` goes back to an earlier champion"
        raise InputError(f"already decided: {made.says}", where=candidate.digest, how=how)
    return made


def check_judgement(judgement: Judgement, candidate: Candidate, policy: Policy) -> None:
    """Refuse a judgement that is not one of this candidate by this policy, or that lets nothing pass.

    Raises:
        NoCandidate: a check failed or is missing. A figure that is none fails its check, where it is read.
        InputError: it is about other evidence, or by another policy.
    """
    if judgement.policy_sha256 != policy.sha256 or judgement.evidence != candidate.evidence:
        what = "the gate's judgement is not one of this candidate's evidence by the present policy"
        raise InputError(what, where=candidate.digest, how="judge it again: evenkeel promote")
    failed = [check for check in judgement.checks if check.result == "fail"]
    if not judgement.checks:
        raise _refusal("the gate made no check, and a missing check is a fail", candidate)
    if failed or judgement.result not in ("pass", "inconclusive"):
        raise _refusal("the gate failed for this candidate:\n" + _lines(failed), candidate)
    if judgement.result == "pass" and any(check.result != "pass" for check in judgement.checks):
        raise _refusal("the gate says pass, and not all of its checks do:\n" + _lines(judgement.checks), candidate)


def _refusal(what: str, candidate: Candidate) -> NoCandidate:
    how = "no approval changes that: fix what the checks name, train again, or change the policy for everybody"
    return NoCandidate(what.rstrip(), where=candidate.digest, how=how)


def _lines(checks: Sequence[GateCheck]) -> str:
    return "\n".join(f"  - {check.words}" for check in checks)


def _rejections(
    approvals: Sequence[Approval], candidate: Candidate, policy: Policy, now: datetime, registry: str
) -> Standing:
    return standing(approvals, Terms(rejection_question(candidate, policy, 0, registry), policy, now))


def not_rejected(made: PromotionRecord) -> PromotionRecord:
    """``made`` itself.

    Raises:
        InputError: it rejects its candidate.
    """
    if made.outcome == "rejected":
        how = "a rejection is final for this evidence; train and propose another checkpoint"
        raise InputError(f"already decided: {made.says}", where=made.digest, how=how)
    return made
