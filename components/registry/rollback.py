"""Go back to a checkpoint that was the champion before: a new record, by a quorum of its own."""

from __future__ import annotations

from dataclasses import replace

from components.config.promotion import Policy
from components.errors import InputError
from components.registry.aliases import sound_history
from components.registry.appending import append, check_in_force, make_record
from components.registry.approvals import approvals_of
from components.registry.authorization import check_approved
from components.registry.base import Store
from components.registry.candidates import SHORTEST, digits, read_candidate
from components.registry.clock import Clock, utc_now
from components.registry.history import ChampionEntry, History
from components.registry.promotion import NotApproved
from components.registry.records import PromotionRecord
from components.registry.standing import Standing, Terms, standing
from components.registry.starters import started_by
from components.registry.statements import Question
from components.registry.stored import recheck
from components.types import GateCheck


def target(history: History, to: str = "") -> ChampionEntry:
    """The earlier champion that is meant.

    Args:
        to: its digest, or the first digits of it, or the number of the record that made it champion; when empty, the
            one before the present champion. What was gone back over does not count as before, so that repeated
            roll-backs do not alternate between two.

    Raises:
        InputError: there is no such champion, or more than one fits.
    """
    if history.champion is None:
        what = "there is no champion, so there is nothing to go back from"
        raise InputError(what, where="champion", how="promote one")
    if not to:
        if len(history.line) < 2:
            how = "name another with --to; `evenkeel history` shows every champion"
            raise InputError("no champion came before the present one", where=history.champion.digest, how=how)
        return history.line[-2]
    fitting = {entry.digest: entry for entry in history.champions if _fits(entry, to)}
    if len(fitting) != 1:
        what = "several champions fit" if fitting else "this never was the champion, and only such can be gone back to"
        raise InputError(what, where=to, how="`evenkeel history` shows every champion with its record and digest")
    return next(iter(fitting.values()))


def _fits(entry: ChampionEntry, to: str) -> bool:
    if to.isdecimal() and len(to) < SHORTEST:
        return entry.record == int(to)
    return len(digits(to)) >= SHORTEST and entry.digest.startswith(digits(to))


def rollback_question(history: History, entry: ChampionEntry, policy: Policy) -> Question:
    """The question whether to go back to an earlier champion, in the registry of these records."""
    evidence = history.records[entry.record - 1].evidence
    return Question("rollback", entry.digest, evidence, policy.sha256, history.base, history.registry)


def standing_on_rollback(store: Store, question: Question, policy: Policy, clock: Clock = utc_now) -> Standing:
    """How far a roll-back is approved, by what is stored; raises InputError as `starters_of_run`."""
    terms = Terms(question, policy, clock(), starters_of_run(store, question))
    return standing(approvals_of(store, question.digest), terms)


def starters_of_run(store: Store, question: Question) -> tuple[str, ...] | None:
    """The names of those who started the run of an earlier champion; None where they are not known.

    Raises:
        InputError: its record and the evidence that it was promoted on name different people.
    """
    candidate = read_candidate(store, question.digest)
    return started_by(store, candidate and replace(candidate, evidence=question.evidence))


def rollback(store: Store, question: Question, policy: Policy, clock: Clock = utc_now) -> PromotionRecord:
    """Go back, if the stored approvals are enough. Idempotent: the same question again gets the same record.

    Raises:
        NotApproved: approvals are missing; it states which do not count, and why.
        InputError: it never was the champion or is it now, what is stored is not what its digest says or may not be
            loaded, as `starters_of_run`, the clock was set back, or the registry contradicts itself.
    """
    history = sound_history(store)
    entry = history.champion_entry(question.digest)
    if question.action != "rollback" or entry is None:
        raise InputError("this never was the champion", where=question.digest, how="see `evenkeel history`")
    check_in_force(history, policy)
    check_approved(history.records[entry.record - 1], policy)
    intact = recheck(store, question.digest, question.evidence, policy)
    once = GateCheck("was the champion", "pass", f"by record {entry.record}")
    approvals, starters = approvals_of(store, question.digest), starters_of_run(store, question)
    gate = {"result": "pass", "checks": [intact.to_dict(), once.to_dict()]}

    def write(history: History) -> PromotionRecord:
        if (made := history.tried("rollback", question.digest, question.evidence, question.base)) is not None:
            return made
        champion = history.champion
        if champion is not None and (history.base, champion.digest) == (question.base, question.digest):
            raise InputError("this is the champion already", where=question.digest, how="name another with --to")
        history.check_clock(now := clock())
        found = standing(approvals, Terms(question, policy, now, starters))
        if not found.met:
            how = f"evenkeel rollback --to {question.digest[:12]} --by YOUR-NAME --reason WHY"
            raise NotApproved(found, how)
        return make_record(history, found, gate, policy, now)

    return append(store, history, write, policy)
