"""Scoring a batch under a model: one forward pass, micro-batches of them, and a module whose forward pass it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from components.config.base import ComputeDtype
from components.config.training import LOGITS_AT_ONCE, LearnerSettings
from components.device import autocast
from components.learner.batch import Batch
from components.policy import TokenStats, response_logprobs
from components.policy.mixing import Mixes
from components.policy.routing import Routing
from components.working import working

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


def score(model: PreTrainedModel, batch: Batch, how: Pass, lean: bool = True) -> TokenStats:
    """Log-probabilities and entropies of the tokens that count, ``[B, R]`` fp32 nats, in one pass; 0 elsewhere.

    Routes that the batch has are compared with the model's own, and followed with ``replay``. For ``lean`` see
    `response_logprobs`.
    """
    ids, weights = batch.mix_ids, batch.mix_weights
    return response_logprobs(
        model,
        batch.input_ids,
        batch.attention_mask,
        batch.responses,
        how.temperature,
        mask=batch.response_mask,
        group=batch.group,
        entropy_grad=how.entropy_grad,
        logits_at_once=how.logits_at_once,
        at_least=how.at_least,
        mixes=None if ids is None or weights is None else Mixes(ids, weights),
        routing=None if batch.routes is None else Routing(batch.routes, how.replay),
        lean=lean,
    )


@torch.no_grad()
def score_all(
    model: PreTrainedModel,
    batch: Batch,
    temperature: float,
    max_tokens: int,
    *,
    compute_dtype: ComputeDtype = "auto",
    replay: bool = False,
) -> TokenStats:
    """`score` in passes of at most ``max_tokens`` padded tokens, where the model is and without gradient; the result is
    on the CPU, 0 in trimmed places."""
    parts, how = [], Pass(temperature, False, LOGITS_AT_ONCE, replay)
    with working("scoring", len(batch), "rows") as work, autocast(model, compute_dtype):
        for part in batch.micro_batches(max_tokens):
            parts.append(score(model, part.to(model.device), how))
            work.add(len(part))
    width = batch.responses
    return TokenStats(join([part.logp for part in parts], width), join([part.entropy for part in parts], width))


def join(parts: Sequence[Tensor], width: int) -> Tensor:
    """Rows of trimmed micro-batches, one below the other, as ``[B, width]`` on the CPU with 0 where they were
    trimmed."""
    return torch.cat([functional.pad(part.cpu(), (0, width - part.shape[1])) for part in parts])


Scoring = Callable[[Batch, Pass], TokenStats]
"""One forward pass over a micro-batch; where weights are spread over ranks, all of them make it together."""


class ScoringModule(nn.Module):
    """For whatever spreads weights over ranks: all that scoring touches, the output layer included, happens inside its
    forward pass."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model
        self.training = model.training

    def forward(self, batch: Batch, how: Pass) -> tuple[Tensor, Tensor, Tensor | None]:
        stats = score(self.model, batch, how, lean=False)
        return stats.logp, stats.entropy, stats.routing
