"""VESPO: the sequence's own importance weight, reshaped so that it dies out on both sides (2602.10693)."""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.ratios import VespoRatio
from components.objectives.tokens import MAX_LOG_RATIO, TokenInputs, TokenLoss, mean_per_sequence


def vespo(logp: Tensor, tokens: TokenInputs, settings: VespoRatio) -> TokenLoss:
    """-phi(W) A log pi, phi(W) = W^k e^(lambda (1 - W)), W the product of the sequence's ratios pi / pi_old.

    phi(1) = 1, its maximum is at k / lambda, and it goes to 0 for very likely and very unlikely sequences. k and lambda
    depend on the sign of A. No gradient flows through phi; the value has no meaning.
    """
    total = mean_per_sequence(logp.detach() - tokens.old_logp, tokens.mask) * tokens.mask.sum(1, keepdim=True)
    total = total.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).expand_as(logp)
    good = tokens.advantages > 0
    k = torch.where(good, settings.k_positive, settings.k_negative)
    decay = torch.where(good, settings.lambda_positive, settings.lambda_negative)
    weight = (k * total + decay * (1 - total.exp())).exp()
    nothing = tokens.mask.new_zeros(tokens.mask.shape)
    return TokenLoss(-weight * tokens.advantages * logp, nothing, nothing, total.exp())
