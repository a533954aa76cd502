"""GSPO: one importance ratio a sequence, the geometric mean of its tokens' ratios (2507.18071).

With ``sequence_mean`` aggregation the loss is -mean_i min(s_i A_i, clip(s_i) A_i), s_i = exp(mean_t log r_it). The
value stands on every token of the sequence, whose mean it is. LUSPO (2602.05261) is the sum: the same under an
aggregation that weighs every token alike, with another range.
"""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.ratios import GspoRatio, LuspoRatio
from components.objectives.tokens import MAX_LOG_RATIO, TokenInputs, TokenLoss, mean_per_sequence


def gspo(logp: Tensor, tokens: TokenInputs, settings: GspoRatio | LuspoRatio) -> TokenLoss:
    """The gradient of s reaches every token of the sequence, s A / |y| each."""
    return _clipped(_sequence_ratio(logp, tokens).expand_as(logp), tokens.advantages, settings)


def gspo_token(logp: Tensor, tokens: TokenInputs, settings: GspoRatio) -> TokenLoss:
    """s with a token's own gradient: sg(s) pi / sg(pi). The same as `gspo` when A is constant over the sequence."""
    ratio = _sequence_ratio(logp, tokens).detach() * (logp - logp.detach()).exp()
    return _clipped(ratio, tokens.advantages, settings)


def _sequence_ratio(logp: Tensor, tokens: TokenInputs) -> Tensor:
    mean = mean_per_sequence(logp - tokens.old_logp, tokens.mask)
    return mean.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def _clipped(ratio: Tensor, advantages: Tensor, settings: GspoRatio | LuspoRatio) -> TokenLoss:
    clipped = ratio.clamp(1 - settings.low, 1 + settings.high)
    low = (ratio < 1 - settings.low) & (advantages < 0)
    high = (ratio > 1 + settings.high) & (advantages > 0)
    return TokenLoss(-torch.minimum(ratio * advantages, clipped * advantages), low, high, ratio)
