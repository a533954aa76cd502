"""Another policy takes the place of the one in force: by a record that the people of both have approved.

As a root of TUF is replaced. The people of the earlier policy agree that it is given up; those of the new one agree to
all records up to then, whose last they name. So neither a change in the project alone nor write access to the registry
alone changes what a champion needs.
"""

from __future__ import annotations

from dataclasses import replace

from components.config.promotion import Policy
from components.errors import InputError
from components.registry.aliases import sound_history
from components.registry.appending import append, make_record
from components.registry.approvals import approvals_of
from components.registry.authorization import unsigned
from components.registry.base import Store
from components.registry.clock import Clock, parse, utc_now
from components.registry.history import History
from components.registry.policies import store_policy
from components.registry.promotion import NotApproved
from components.registry.records import PromotionRecord
from components.registry.standing import Standing, Terms, standing
from components.registry.statements import Question
from components.types import GateCheck

NOTHING_JUDGED = {"result": "pass", "checks": [GateCheck("adoption", "pass", "approved by both policies").to_dict()]}
"""What the record holds in the place of a gate."""


def adoption_question(history: History, policy: Policy) -> Question:
    """What is to be approved for ``policy`` to take the place of the one in force.

    Raises:
        InputError: there is none in force, or it is this one.
    """
    if history.in_force is None:
        how = "approve a candidate: the first record goes by the policy that the project has then"
        raise InputError("nothing was decided here, so no policy is in force", where="the registry", how=how)
    if history.in_force == policy.sha256:
        how = "nothing is to be done"
        raise InputError("this policy is in force", where=policy.sha256[:12], how=how)
    return Question("adopt", policy.sha256, history.head, history.in_force, history.base, history.registry)


def standings_on_adoption(
    store: Store, question: Question, earlier: Policy, policy: Policy, clock: Clock = utc_now
) -> tuple[Standing, Standing]:
    """How far the people of the earlier policy, and those of the new one, have approved."""
    found = approvals_of(store, question.digest)
    by_earlier, by_new = (standing(found, Terms(question, one, clock(), own_counts=True)) for one in (earlier, policy))
    return by_earlier, by_new


def adopt(store: Store, question: Question, earlier: Policy, policy: Policy, clock: Clock = utc_now) -> PromotionRecord:
    """Put ``policy`` in force, if the stored approvals are enough for both. Idempotent.

    Raises:
        NotApproved: approvals are missing, by the earlier policy or by the new one.
        InputError: something was decided meanwhile, the clock was set back, or the registry contradicts itself.
    """
    history = sound_history(store)
    store_policy(store, earlier)
    earlier = replace(earlier, project=policy.project)

    def write(history: History) -> PromotionRecord:
        if (made := history.tried("adopt", question.digest, question.evidence, question.base)) is not None:
            return made
        if history.head != question.evidence:
            how = "look at what was decided (evenkeel history), and adopt again"
            raise InputError("something was decided meanwhile", where="the registry", how=how)
        history.check_clock(now := clock())
        found = standings_on_adoption(store, question, earlier, policy, lambda: now)
        for one in found:
            if not one.met:
                raise NotApproved(one, "evenkeel adopt-policy --by YOUR-NAME")
        counted = sorted({*found[0].counted, *found[1].counted}, key=lambda one: (one.statement.at, one.sha256))
        together = replace(found[1], counted=tuple(counted), others=())
        return make_record(history, together, dict(NOTHING_JUDGED), earlier, now)

    return append(store, history, write, policy, earlier)


def unadopted(record: PromotionRecord, earlier: Policy, policy: Policy) -> str:
    """Which approvals, or which signature, a record that adopts ``policy`` lacks; "" where it lacks none."""
    if problem := unsigned(record, earlier):
        return problem
    for one in (earlier, policy):
        found = standing(record.approvals, Terms(record.question, one, parse(record.at), own_counts=True))
        if not found.met:
            return "; ".join(found.lines())
    return ""
