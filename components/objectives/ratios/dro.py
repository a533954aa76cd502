"""DRO: a quadratic price on every token's move in place of a clip (2405.19107; per token, as verl and Tinker do)."""

from __future__ import annotations

from torch import Tensor

from components.config.ratios import DroRatio
from components.objectives.tokens import TokenInputs, TokenLoss, log_ratio


def dro(logp: Tensor, tokens: TokenInputs, settings: DroRatio) -> TokenLoss:
    """-(A log pi - beta / 2 (log pi - log pi_old)^2): on the same batch a token comes to rest at A / beta nats.

    No token counts as clipped; every one is pulled back.
    """
    difference = log_ratio(logp, tokens.old_logp)
    nothing = tokens.mask.new_zeros(tokens.mask.shape)
    loss = -tokens.advantages * logp + settings.beta / 2 * (logp - tokens.old_logp).square()
    return TokenLoss(loss, nothing, nothing, difference.exp())
