"""SAPO: a smooth gate in place of the clip (2511.20347)."""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.ratios import SapoRatio
from components.objectives.tokens import TokenInputs, TokenLoss, log_ratio


def sapo(logp: Tensor, tokens: TokenInputs, settings: SapoRatio) -> TokenLoss:
    """-f(r) A with f(r) = (4 / tau) sigmoid(tau (r - 1)); tau depends on the sign of A. The slope at r = 1 is 1.

    The gate never removes a gradient altogether, so nothing counts as clipped.
    """
    ratio = log_ratio(logp, tokens.old_logp).exp()
    tau = torch.where(tokens.advantages > 0, settings.tau_positive, settings.tau_negative)
    gate = 4 / tau * torch.sigmoid(tau * (ratio - 1))
    nothing = tokens.mask.new_zeros(tokens.mask.shape)
    return TokenLoss(-gate * tokens.advantages, nothing, nothing, ratio)
