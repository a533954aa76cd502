"""TOPR, tapered off-policy REINFORCE: what was good is imitated, what was bad forgotten while likely (2503.14286)."""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.ratios import ToprRatio
from components.objectives.tokens import TokenInputs, TokenLoss, log_ratio


def topr(logp: Tensor, tokens: TokenInputs, settings: ToprRatio) -> TokenLoss:
    """-w A log pi with w = 1 where A > 0, min(r, cap) where A < 0; r = pi / pi_old. No gradient flows through w.

    As with CISPO the value has no meaning, and no token loses its gradient.
    """
    ratio = log_ratio(logp, tokens.old_logp).detach().exp()
    weight = torch.where(tokens.advantages > 0, 1.0, ratio.clamp(max=settings.cap))
    nothing = tokens.mask.new_zeros(tokens.mask.shape)
    return TokenLoss(-weight * tokens.advantages * logp, nothing, nothing, ratio)
