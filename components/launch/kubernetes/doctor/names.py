"""What the configuration names is there."""

from __future__ import annotations

from components.checks import Check
from components.launch.kubernetes.api import Examination
from components.launch.kubernetes.api.wording import PLATFORM
from components.launch.kubernetes.doctor.looking import Found, looks_at
from components.launch.kubernetes.plan import RunPlan


def named(look: Examination, plan: RunPlan) -> Found:
    yield from account(look, plan)
    if plan.how.queue:
        yield from queue(look, plan.how.queue)
    for name in sorted({role.pods.priority_class for role in plan.roles if role.pods.priority_class}):
        yield from priority(look, name)


@looks_at("account")
def account(look: Examination, plan: RunPlan) -> Found:
    """Of the pods."""
    name = plan.how.service_account
    if look.account(name) is None:
        fix = f"{PLATFORM}, or correct launch.kubernetes.service_account"
        yield Check("account", "fail", f"there is no service account {name} in {look.namespace}", fix)
    else:
        yield Check("account", "ok", name)


@looks_at("queue")
def queue(look: Examination, name: str) -> Found:
    """Without it a run would wait for ever."""
    if look.queue(name) is None:
        fix = f"kubectl -n {look.namespace} get localqueues; correct launch.kubernetes.queue, or leave it out"
        yield Check("queue", "fail", f"there is no LocalQueue {name} in {look.namespace}", fix)
    else:
        yield Check("queue", "ok", name)


@looks_at("priority")
def priority(look: Examination, name: str) -> Found:
    """Pods with one that is not there are refused."""
    if look.priority_class(name) is None:
        fix = "kubectl get priorityclasses; correct the priority_class of learner or rollout"
        yield Check("priority", "fail", f"there is no PriorityClass {name}", fix)
    else:
        yield Check("priority", "ok", name)
