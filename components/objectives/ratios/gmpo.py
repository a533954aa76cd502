"""GMPO: tokens are clipped one by one in log space, then joined by the geometric mean (2507.20673)."""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.ratios import GmpoRatio
from components.objectives.tokens import MAX_LOG_RATIO, TokenInputs, TokenLoss, log_ratio, mean_per_sequence


def gmpo(logp: Tensor, tokens: TokenInputs, settings: GmpoRatio) -> TokenLoss:
    """-A R with R = exp(mean_t d_t); d_t = min(log r_t, high) where A > 0, max(log r_t, -low) where A < 0.

    A clipped token has no gradient; every other has A R / |y|. The value stands on every token of the sequence.
    """
    difference = log_ratio(logp, tokens.old_logp)
    advantages = tokens.advantages
    bounded = torch.where(advantages > 0, difference.clamp(max=settings.high), difference.clamp(min=-settings.low))
    mean = mean_per_sequence(bounded, tokens.mask).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    low = (difference < -settings.low) & (advantages < 0)
    high = (difference > settings.high) & (advantages > 0)
    return TokenLoss(-advantages * mean.exp(), low, high, difference.exp())
