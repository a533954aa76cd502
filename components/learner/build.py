"""Builds the learner that the settings name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor

from components.config import Settings
from components.learner.base import Learner
from components.learner.follower import Start
from components.learner.group import Group
from components.learner.leader import Leader
from components.learner.reference import refer
from components.learner.torch_learner import TorchLearner
from components.policy import Policy

Weights = Mapping[str, Tensor]


def _ranks(policy: Policy, settings: Settings, weights: Weights | None, reference: bool) -> Learner:
    then = refer if reference else None
    begin = Start.of(_make(settings), policy, settings, then)
    return Leader(policy, begin, Group(settings.learner.ranks), weights)


def _torch(policy: Policy, settings: Settings, weights: Weights | None, reference: bool) -> Learner:
    if weights is not None:
        raise TypeError("a learner of one process takes a policy that has its weights")
    return _make(settings)(policy, reference=policy.reference() if reference else None)


def _make(settings: Settings) -> partial[TorchLearner]:
    own, temperature = settings.learner, settings.rollout.temperature
    return partial(TorchLearner, settings=own, objective=settings.objective, temperature=temperature)


LEARNERS: dict[str, Callable[[Policy, Settings, Weights | None, bool], Learner]] = {
    "torch": _torch,
    "deepspeed": _ranks,
    "fsdp2": _ranks,
}


def build_learner(
    policy: Policy, settings: Settings, weights: Weights | None = None, *, reference: bool = False
) -> Learner:
    """The learner that the settings name; it takes ``policy`` over and changes its weights.

    Args:
        weights: of several ranks, what they begin with where ``policy`` is an `outline`.
        reference: whether it keeps the weights that it begins with, for `Learner.reference`.
    """
    return LEARNERS[settings.learner.kind](policy, settings, weights, reference)
