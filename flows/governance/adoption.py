"""`evenkeel adopt`: the policy that the project has now takes the place of the one that its registry goes by."""

from __future__ import annotations

from dataclasses import dataclass, replace

from components.errors import InputError
from components.registry import (
    Approval,
    History,
    NotApproved,
    PromotionRecord,
    Question,
    Terms,
    identify,
    sound_history,
    standing,
    store_approval,
)
from components.registry.adoption import adopt, adoption_question
from components.registry.clock import utc_now
from components.registry.records import record_key
from flows.governance.policies import HOW, earlier_policy, problems
from flows.governance.registry import RegistryContext
from flows.governance.statements import StatementOptions, unchecked_statement


@dataclass(frozen=True)
class Adoption:
    """What came of it: the record, or what is still missing."""

    record: PromotionRecord | None
    missing: str = ""


def adopt_policy(context: RegistryContext, options: StatementOptions) -> Adoption:
    """Store a person's approval of the project's policy, and put it in force if that was the last one needed.

    Raises:
        InputError: it is in force, the champion does not hold under the policy in force, or the approval would count
            neither by the earlier policy nor by the new one; it says why.
    """
    history = sound_history(context.store)
    asked = replace(adoption_question(history, context.policy), registry=identify(context.store))
    earlier = earlier_policy(context, asked.policy)
    _check_champion(replace(context, policy=earlier), history)
    days = min(one.settings.valid_days for one in (earlier, context.policy))
    approval = unchecked_statement(asked, options, history, days)
    _check_counts(context, approval, asked)
    store_approval(context.store, approval)
    try:
        return Adoption(adopt(context.store, asked, earlier, context.policy))
    except NotApproved as missing:
        return Adoption(None, missing.what)


def _check_champion(context: RegistryContext, history: History) -> None:
    """Refuse to agree to a champion that does not hold now."""
    if problem := problems(context, history).get(history.base):
        what = f"whoever adopts a policy agrees to the present champion, and it does not hold: {problem}"
        raise InputError(what, where=record_key(history.base), how=HOW)


def _check_counts(context: RegistryContext, approval: Approval, asked: Question) -> None:
    """Refuse an approval that counts by neither policy."""
    why = []
    for policy in (earlier_policy(context, asked.policy), context.policy):
        others = standing([approval], Terms(asked, policy, utc_now(), own_counts=True)).others
        if not others:
            return
        why.append(others[0][1])
    what = "this would not count: " + "; ".join(dict.fromkeys(why))
    raise InputError(what, where=asked.digest, how="nothing was recorded; do what it says, or ask another")
