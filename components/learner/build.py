"""Builds the learner that the settings name, and over ranks its reference: the policy that the run started from, which
no update changes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh

from components.config import Settings
from components.config.training import LearnerSettings
from components.learner.base import Learner
from components.learner.batch import Batch
from components.learner.follower import Start
from components.learner.group import Group
from components.learner.leader import Leader
from components.learner.scoring import Pass, Scoring, ScoringModule
from components.learner.sharding.fsdp2 import precision, spread_out
from components.learner.sharding.source import Source
from components.learner.torch_learner import TorchLearner
from components.policy import Policy, TokenStats
from components.policy.lora import without_adapter

Weights = Mapping[str, Tensor]


def refer(learner: TorchLearner, begin: Start[TorchLearner], source: Source) -> None:
    """Give a learner of ranks the weights that it begins with as its reference; collective. With an adapter they are
    there; without one every rank gets its shares of them a second time."""
    if begin.lora is not None:
        learner.refer_to(base(learner))
    else:
        learner.refer_to(frozen(begin.base(), source, learner.settings))


def frozen(policy: Policy, source: Source, settings: LearnerSettings) -> Scoring:
    """A copy of the policy without gradients, spread over the ranks by FSDP2 whatever the learner's own sharding is;
    ``policy`` has its parameters on the meta device. Collective."""
    policy.model.requires_grad_(False)
    module = ScoringModule(policy.model)
    mesh, how = init_device_mesh(source.device.type, (source.ranks.size,)), precision(settings, source.device)
    outermost: Any = spread_out(module, source, {"mesh": mesh, "mp_policy": how})

    @torch.no_grad()
    def score(batch: Batch, how: Pass) -> TokenStats:
        stats = TokenStats(*module(batch, how))
        outermost.reshard()  # a pass without gradient leaves embedding and output layer gathered
        return stats

    return score


def base(learner: TorchLearner) -> Scoring:
    """The learner's own weights without their adapter."""

    def score(batch: Batch, how: Pass) -> TokenStats:
        with without_adapter(learner.model):
            return learner.sharding.score(batch, how)

    return score


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
