"""Builds the learner that the settings name."""

from __future__ import annotations

from collections.abc import Mapping
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


def build_learner(
    policy: Policy, settings: Settings, weights: Weights | None = None, *, reference: bool = False
) -> Learner:
    """The learner that ``learner.kind`` names; it takes ``policy`` over and changes its weights.

    Args:
        weights: of several ranks, what they begin with where ``policy`` is an `outline`.
        reference: whether it keeps the weights that it begins with, for `Learner.reference`.
    """
    own, temperature = settings.learner, settings.rollout.temperature
    make = partial(TorchLearner, settings=own, objective=settings.objective, temperature=temperature)
    if own.kind != "torch":
        begin = Start.of(make, policy, settings, refer if reference else None)
        return Leader(policy, begin, Group(own.ranks), weights)
    if weights is not None:
        raise TypeError("a learner of one process takes a policy that has its weights")
    return make(policy, reference=policy.reference() if reference else None)
