"""The frozen policy that the run started from, for KL; and the tokens that end and pad its texts."""

from __future__ import annotations

from torch import Tensor

from components.config import Settings
from components.health.rules import compile_rule
from components.learner.base import Learner
from components.learner.batch import Batch
from components.policy import Policy

SIGNAL, KNOB = "kl_ref", "objective.kl.beta"


def reads_reference(settings: Settings) -> bool:
    """Whether the loss, the reward or a health rule reads the KL to the reference, or a rule may have the loss read
    it."""
    rules = settings.health.rules if settings.health.enabled else {}
    compiled = [compile_rule(name, rule) for name, rule in rules.items()]
    read = any(SIGNAL in condition.signals for rule in compiled for condition in rule.conditions)
    switched_on = any(action.knob == KNOB for rule in rules.values() for action in rule.action)
    return settings.objective.kl is not None or read or switched_on


class Reference:
    """Scores batches under the SFT checkpoint, which the learner keeps. ``policy`` lends its tokenizer.

    Args:
        read: whether anything reads the KL; without that the learner has no reference.
    """

    def __init__(self, policy: Policy, learner: Learner, *, read: bool = True) -> None:
        self.policy, self._learner, self.read = policy, learner, read

    @property
    def pad_id(self) -> int:
        return self.policy.pad_id

    def logprobs(self, batch: Batch) -> Tensor:
        """Log-probabilities of the response tokens, ``[B, R]`` fp32 nats."""
        return self._learner.reference(batch)
