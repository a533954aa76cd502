"""The champion, judged again from its evidence by the policy that its record names.

A record contains the gate's result, but anyone with write access to the registry can write records. Approvers sign a
statement that names the evidence, so the result is computed again from that evidence instead of taken from the record.
"""

from __future__ import annotations

from dataclasses import replace

from components.config.promotion import Policy
from components.gate.candidate import judge_candidate
from components.registry import History, PromotionRecord, read_candidate
from components.registry.authorization import missing_approvals
from components.registry.starters import in_evidence
from flows.governance.registry import RegistryContext


def promoted_by(history: History) -> PromotionRecord | None:
    """The record that promoted the champion: of one that was gone back to, the earlier one."""
    base = history.stands_on
    if base is None or base.action == "promote":
        return base
    promotions = (one for one in reversed(history.records[: base.number]) if one.outcome == "promoted")
    return next((one for one in promotions if one.digest == base.digest), None)


def refused_now(context: RegistryContext, record: PromotionRecord, policy: Policy) -> str:
    """Why a champion is refused by its evidence, by the gate or for want of approvals; "" where it is not.

    What the gate leaves to people takes a reason of everyone who approved, as when they did.
    """
    stored = read_candidate(context.store, record.digest)
    if stored is None:
        return "its candidate record is gone"
    candidate = replace(stored, evidence=record.evidence)
    judgement = judge_candidate(context.store, candidate, policy, None)
    if judgement.result == "fail":
        return "; ".join(check.words for check in judgement.checks if check.result == "fail")
    if judgement.result == "inconclusive" and not all(one.statement.reason for one in record.approvals):
        return "the gate is inconclusive, and not everyone who approved gave a reason"
    return missing_approvals(record, policy, starter=in_evidence(context.store, candidate))
