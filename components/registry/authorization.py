"""Does a record rest on the approvals that its policy requires?

Whoever can write to the store could append one that does not: the chain of hashes proves that records were not changed,
and nothing about who wrote them.
"""

from __future__ import annotations

from components.config.promotion import Policy
from components.errors import InputError
from components.registry.clock import parse
from components.registry.record_signing import unsigned
from components.registry.records import RESTORE, PromotionRecord, record_key
from components.registry.standing import Terms, standing


def missing_approvals(
    record: PromotionRecord,
    policy: Policy,
    rejected: PromotionRecord | None = None,
    starter: tuple[str, ...] | None = None,
) -> str:
    """Which approvals, or which signature, a record lacks by the policy that it names; "" where it lacks none, or names
    another policy than this one.

    Args:
        rejected: the newest record before that rejected the same checkpoint.
        starter: who started the run, by the evidence; None leaves it out, as a candidate's record may have noted more
            names since.
    """
    if record.policy_sha256 != policy.sha256 or record.schema == 1:
        return ""
    if problem := unsigned(record, policy):
        return problem
    question = record.question
    doubtful = record.action == "promote" and record.gate.get("result") == "inconclusive"
    since = parse(rejected.at) if rejected else None
    terms = Terms(question, policy, parse(record.at), starter, doubtful, own_counts=starter is None, rejected=since)
    found = standing(record.approvals, terms)
    return "" if found.met else "; ".join(found.lines())


def check_approved(record: PromotionRecord, policy: Policy) -> None:
    """Refuse a record that the present policy would not have allowed, and that says it did.

    Raises:
        InputError: it lacks approvals; which, and why those that it has do not count.
    """
    if problem := missing_approvals(record, policy):
        raise InputError(
            f"record {record.number} says {record.outcome!r} without the approvals that the policy requires: {problem}",
            where=record_key(record.number),
            how=RESTORE,
        )
