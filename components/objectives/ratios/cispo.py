"""CISPO: the importance weight is clipped, the gradient of every token is kept (2506.13585)."""

from __future__ import annotations

from torch import Tensor

from components.config.ratios import CispoRatio
from components.objectives.tokens import TokenInputs, TokenLoss, log_ratio


def cispo(logp: Tensor, tokens: TokenInputs, settings: CispoRatio) -> TokenLoss:
    """-sg(clip(r, floor, cap)) A log pi. At r = 1 the weight is exactly 1, whatever the cap.

    The value of this loss depends on log pi and has no meaning; only its gradient has. No token counts as clipped: none
    loses its gradient.
    """
    anchor = tokens.old_logp if settings.anchor == "old" else tokens.rollout_logp
    ratio = log_ratio(logp, anchor).detach().exp()
    loss = -ratio.clamp(settings.floor, settings.cap) * tokens.advantages * logp
    nothing = tokens.mask.new_zeros(tokens.mask.shape)
    return TokenLoss(loss, nothing, nothing, ratio)
