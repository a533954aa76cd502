"""`evenkeel adopt-policy`: puts the project's present policy in force in its registry."""

from __future__ import annotations

from dataclasses import replace

from components import registry
from components.errors import InputError
from components.registry import Approval, NotApproved, PromotionRecord, Question, Terms
from components.registry.adoption import adopt, adoption_question
from components.registry.clock import utc_now
from components.registry.records import record_key
from components.registry.signing import verify
from flows.governance.decisions import StatementOptions, unchecked_statement
from flows.governance.policies import HOW, earlier_policy, problems
from flows.governance.registry import RegistryContext


def adopt_policy(context: RegistryContext, options: StatementOptions) -> PromotionRecord | NotApproved:
    """Store a person's approval of the project's policy, and put it in force if that was the last one needed.

    Returns:
        The record, or which approvals are still missing.

    Raises:
        InputError: it is in force, the champion does not hold under the policy in force, or the approval would count
            neither by the earlier policy nor by the new one.
    """
    history = registry.sound_history(context.store)
    subject = replace(adoption_question(history, context.policy), registry=registry.identify(context.store))
    earlier = earlier_policy(context, subject.policy)
    if problem := problems(replace(context, policy=earlier), history).get(history.base):
        what = f"adopting a policy confirms the present champion, and that does not hold: {problem}"
        raise InputError(what, where=record_key(history.base), how=HOW)
    days = min(one.settings.valid_days for one in (earlier, context.policy))
    approval = unchecked_statement(subject, options, history, days)
    _check_counts(context, approval, subject)
    registry.store_approval(context.store, approval)
    try:
        return adopt(context.store, subject, earlier, context.policy)
    except NotApproved as missing:
        return missing


def distrusted_champion(context: RegistryContext) -> str:
    """What follows where no signer of the project's policy has signed the champion; "" where one has."""
    champion = registry.sound_history(context.store).champion
    if champion is None:
        return ""
    try:
        verify(context.store, champion.digest, context.policy.signers)
    except InputError as error:
        what = f"under this policy the champion {champion.digest[:12]} cannot be pulled or compared with"
        return f"{what}: {error.what}; {error.how}"
    return ""


def _check_counts(context: RegistryContext, approval: Approval, subject: Question) -> None:
    """Refuse an approval that counts by neither policy."""
    why = []
    for policy in (earlier_policy(context, subject.policy), context.policy):
        others = registry.standing([approval], Terms(subject, policy, utc_now(), own_counts=True)).others
        if not others:
            return
        why.append(others[0][1])
    what = "this would not count: " + "; ".join(dict.fromkeys(why))
    raise InputError(
        what, where=subject.digest, how="nothing was recorded; fix the reasons above, or have another person approve"
    )
