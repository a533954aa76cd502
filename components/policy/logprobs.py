"""Log-probabilities and entropies of given tokens under a model."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel


class TokenStats(NamedTuple):
    """``logp`` and ``entropy``, both ``[B, R]`` fp32 in nats, for the last R positions of the input."""

    logp: Tensor
    entropy: Tensor


def position_ids(attention_mask: Tensor) -> Tensor:
    """Positions that start at 0 on the first real token of a left-padded row; ``[B, T]``."""
    return (attention_mask.cumsum(-1) - 1).clamp(min=0)


def response_logprobs(
    model: PreTrainedModel, input_ids: Tensor, attention_mask: Tensor, responses: int, temperature: float
) -> TokenStats:
    """Score the last ``responses`` columns of ``input_ids`` ``[B, T]``, at the sampling temperature.

    Logits are computed for those columns only, and turned into log-probabilities in fp32.
    """
    output = model(
        input_ids=input_ids,
        attention_mask=attention_mask,
        position_ids=position_ids(attention_mask),
        use_cache=False,
        logits_to_keep=responses + 1,
    )
    return token_stats(output.logits, input_ids, responses, temperature)


def token_stats(logits: Tensor, input_ids: Tensor, responses: int, temperature: float) -> TokenStats:
    """Statistics of the last ``responses`` tokens of ``input_ids`` ``[B, T]`` under ``logits`` ``[B, >R, V]``."""
    logits = logits[:, -responses - 1 : -1].float() / temperature
    distribution = torch.log_softmax(logits, dim=-1)
    logp = distribution.gather(-1, input_ids[:, -responses:, None]).squeeze(-1)
    with torch.no_grad():
        entropy = -(distribution.exp() * distribution).sum(-1)
    return TokenStats(logp, entropy)
