"""A model whose forward pass is `score`: one module, one pass, for whatever spreads its weights over ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn
from transformers import PreTrainedModel

from components.config.training import LearnerSettings
from components.learner.batch import Batch
from components.learner.scoring import score
from components.policy import TokenStats

PREFIX = "model."
"""Before the name of every parameter in a `ScoringModule`."""


class Pass(NamedTuple):
    """How one forward pass is made."""

    temperature: float
    entropy_grad: bool
    logits_at_once: int
    replay: bool
    at_least: int = 0
    """See `response_logprobs`."""

    @classmethod
    def of(cls, settings: LearnerSettings, temperature: float, entropy_grad: bool = False) -> Pass:
        return cls(temperature, entropy_grad, settings.logits_at_once, settings.routing_replay)


def score_pass(model: PreTrainedModel, batch: Batch, how: Pass, lean: bool = True) -> TokenStats:
    """`score` as the settings of a learner have it."""
    return score(
        model,
        batch,
        how.temperature,
        how.entropy_grad,
        logits_at_once=how.logits_at_once,
        at_least=how.at_least,
        replay=how.replay,
        lean=lean,
    )


Scoring = Callable[[Batch, Pass], TokenStats]
"""One forward pass over a micro-batch; where weights are spread over ranks, all of them make it together."""


class ScoringModule(nn.Module):
    """Whatever scoring touches, the output layer included, happens inside its forward pass."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model
        self.training = model.training

    def forward(self, batch: Batch, how: Pass) -> tuple[Tensor, Tensor, Tensor | None]:
        stats = score_pass(self.model, batch, how, lean=False)
        return stats.logp, stats.entropy, stats.routing
