"""Appending to the promotion records. Whoever is first takes a number; everybody else reads on and tries again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from components.attempts import Attempts
from components.config.promotion import Policy
from components.errors import InputError
from components.registry.aliases import follow
from components.registry.authorization import signed
from components.registry.base import Store
from components.registry.clock import stamp
from components.registry.history import History
from components.registry.policies import store_policy
from components.registry.records import PromotionRecord
from components.registry.standing import Standing
from components.registry.witness import check_seen, note_seen, prepare, witness_of

SHORTEST, LONGEST = 0.01, 0.5
"""Seconds that one who was not first waits before the next try: many at once would keep each other from writing."""


def append(
    store: Store,
    history: History,
    write: Callable[[History], PromotionRecord],
    policy: Policy,
    earlier: Policy | None = None,
) -> PromotionRecord:
    """Append the record that ``write`` makes of the log so far, and bring the alias to where the records are then.

    Args:
        write: called again with the longer log where somebody else was first. A record that it returns out of the log,
            because it was decided already, is the answer.
        policy: what is decided by; it is stored, so that whoever verifies the record can read it.
        earlier: of a record that adopts ``policy``, the one whose place it takes, and by which it is signed.

    Raises:
        InputError: something lies where the next record belongs that is no record, such as a folder; the record has to
            be signed and cannot be; or a witness knows of other records.
    """
    witnesses = [found for one in (policy, earlier) if one is not None and (found := witness_of(one)) is not None]
    for witness in witnesses:
        prepare(witness, history)
        check_seen(witness, store, history)
    attempts = Attempts(SHORTEST, LONGEST)
    while True:
        record = write(history)
        if record.number <= len(history.records):
            break
        record = signed(record, earlier or policy)
        store_policy(store, policy)
        store.put_if_absent(record.key, record.to_bytes())
        history.read_on(store)  # what is stored under the number now: this record, or somebody else's
        if len(history.records) < record.number:
            how = "find out what lies there, and move it out of the registry; nothing was decided"
            raise InputError("something is in the place of the next record that is none", where=record.key, how=how)
        if history.records[record.number - 1] == record:
            break
        attempts.again()
    settle(store, history, policy, earlier)
    return record


def settle(store: Store, history: History, *policies: Policy | None) -> None:
    """Bring the alias to where the records are, and show the newest one to the witnesses of the policies. A decision
    does so after its record; the same command again does it where a crash has come between.

    Raises:
        InputError: a witness knows of other records, or cannot be written.
    """
    follow(store, history)
    for policy in policies:
        if policy is not None and (witness := witness_of(policy)) is not None:
            note_seen(witness, store, history)


def check_in_force(history: History, policy: Policy) -> None:
    """Refuse to decide by another policy than the registry goes by.

    Raises:
        InputError: the policy has to be adopted first, by the people of the one in force and its own.
    """
    if history.in_force not in (None, policy.sha256):
        key = " --key YOUR-KEY" if policy.settings.quorum("adopt").signed else ""
        what = f"this registry goes by the policy {history.in_force:.12}, and the project's is {policy.sha256[:12]}"
        how = f"adopt it: evenkeel adopt-policy --by YOUR-NAME{key}; where it was changed by mistake, put it back"
        raise InputError(what, where="the promotion policy", how=how)


def make_record(
    history: History, found: Standing, gate: Mapping[str, Any], policy: Policy, now: datetime
) -> PromotionRecord:
    """The next record: what the approvals that stand come to, with the champion that there is by this log."""
    question, statements = found.question, [approval.statement for approval in found.counted]
    if question.action != "adopt":
        check_in_force(history, policy)
    base = history.base if question.action == "reject" else question.base
    return PromotionRecord(
        number=len(history.records) + 1,
        action=question.action,
        outcome=history.expected_outcome(question.action, base),
        digest=question.digest,
        previous=history.champion.digest if history.champion else None,
        base=base,
        evidence=question.evidence,
        gate=gate,
        policy_sha256=policy.sha256,
        approvals=found.counted,
        by=found.by,
        reason="\n".join(filter(None, (statement.reason for statement in statements))),
        at=stamp(now),
        before=history.head,
    )
