"""The reference over ranks: the policy that the run started from, which no update changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.device_mesh import init_device_mesh

from components.config import Settings
from components.config.training import LearnerSettings
from components.health.rules import compile_rule
from components.learner.batch import Batch
from components.learner.scoring_module import Pass, Scoring, ScoringModule
from components.learner.sharding.fsdp2 import precision, spread_out
from components.learner.sharding.source import Source
from components.policy import Policy, TokenStats
from components.policy.merging import without_adapter

if TYPE_CHECKING:
    from components.learner.follower import Start
    from components.learner.torch_learner import TorchLearner

SIGNAL, KNOB = "kl_ref", "objective.kl.beta"


def reads_reference(settings: Settings) -> bool:
    """Whether the loss, the reward or a health rule reads the KL to the reference, or a rule may have the loss read
    it."""
    rules = settings.health.rules if settings.health.enabled else {}
    compiled = [compile_rule(name, rule) for name, rule in rules.items()]
    read = any(SIGNAL in condition.signals for rule in compiled for condition in rule.conditions)
    switched_on = any(action.knob == KNOB for rule in rules.values() for action in rule.action)
    return settings.objective.kl is not None or read or switched_on


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
