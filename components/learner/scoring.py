"""Scoring a batch under a model, micro-batch by micro-batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from components.config.base import ComputeDtype
from components.config.training import LOGITS_AT_ONCE
from components.device import autocast
from components.learner.batch import Batch
from components.learner.inputs import moved
from components.policy import TokenStats, response_logprobs
from components.policy.mixing import Mixes
from components.policy.routing import Routing
from components.working import working


def score(
    model: PreTrainedModel,
    batch: Batch,
    temperature: float,
    entropy_grad: bool = False,
    *,
    logits_at_once: int = LOGITS_AT_ONCE,
    at_least: int = 0,
    replay: bool = False,
    lean: bool = True,
) -> TokenStats:
    """Log-probabilities and entropies of the tokens that count, ``[B, R]`` fp32 nats, in one pass; 0 elsewhere.

    Routes that the batch has are compared with the model's own, and followed with ``replay``. For ``lean`` see
    `response_logprobs`.
    """
    mixes = (
        Mixes(batch.mix_ids, batch.mix_weights) if batch.mix_ids is not None and batch.mix_weights is not None else None
    )
    return response_logprobs(
        model,
        batch.input_ids,
        batch.attention_mask,
        batch.responses,
        temperature,
        mask=batch.response_mask,
        group=batch.group,
        entropy_grad=entropy_grad,
        logits_at_once=logits_at_once,
        at_least=at_least,
        mixes=mixes,
        routing=None if batch.routes is None else Routing(batch.routes, replay),
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
    logits_at_once: int = LOGITS_AT_ONCE,
    replay: bool = False,
) -> TokenStats:
    """`score` in passes of at most ``max_tokens`` padded tokens, where the model is and without gradient; the result is
    on the CPU, 0 in trimmed places."""
    parts = []
    with working("scoring", len(batch), "rows") as work, autocast(model, compute_dtype):
        for part in batch.micro_batches(max_tokens):
            there = moved(part, model.device)
            parts.append(score(model, there, temperature, logits_at_once=logits_at_once, replay=replay))
            work.add(len(part))
    width = batch.responses
    return TokenStats(join([part.logp for part in parts], width), join([part.entropy for part in parts], width))


def join(parts: Sequence[Tensor], width: int) -> Tensor:
    """Rows of trimmed micro-batches, one below the other, as ``[B, width]`` on the CPU with 0 where they were
    trimmed."""
    return torch.cat([functional.pad(part.cpu(), (0, width - part.shape[1])) for part in parts])
