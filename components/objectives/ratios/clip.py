"""PPO's clip, with DAPO's higher upper bound and a bound for negative advantages."""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.ratios import ClipRatio
from components.objectives.tokens import TokenInputs, TokenLoss, log_ratio


def clip(logp: Tensor, tokens: TokenInputs, settings: ClipRatio) -> TokenLoss:
    """-min(r A, clip(r, 1 - low, 1 + high) A), r = pi / pi_old (1707.06347); clip-higher has high > low (2503.14476).

    ``dual`` bounds the loss where A < 0 and r is large: dual clip (1912.09729) and INTELLECT-2's delta (2505.07291).
    """
    advantages = tokens.advantages
    ratio = log_ratio(logp, tokens.old_logp).exp()
    clipped = ratio.clamp(1 - settings.low, 1 + settings.high)
    surrogate = torch.minimum(ratio * advantages, clipped * advantages)
    low = (ratio < 1 - settings.low) & (advantages < 0)
    high = (ratio > 1 + settings.high) & (advantages > 0)
    if settings.dual is not None:
        surrogate = torch.where(advantages < 0, surrogate.maximum(settings.dual * advantages), surrogate)
        high = high | ((ratio > settings.dual) & (advantages < 0))
    return TokenLoss(-surrogate, low, high, ratio)
