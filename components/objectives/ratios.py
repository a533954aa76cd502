"""Ratio families: how far one batch may move the policy, token by token.

Each takes ``logp``, ``old_logp`` and ``advantages``, all ``[B, R]``, and returns the *loss* of every token (to be
minimised) with the metrics of the tokens in ``mask``.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from components.config.objective import ClipRatio

MAX_LOG_RATIO = 20.0
"""Log-ratios are clamped here before exp; e^20 is far outside any trust region."""


class TokenLoss(NamedTuple):
    """``loss [B, R]`` per token, and the two clip indicators ``[B, R]`` (bool): whose gradient the clip removed."""

    loss: Tensor
    clipped_low: Tensor
    clipped_high: Tensor
    ratio: Tensor


def clip(logp: Tensor, old_logp: Tensor, advantages: Tensor, settings: ClipRatio) -> TokenLoss:
    """PPO's pessimistic clip, -min(r A, clip(r, 1 - low, 1 + high) A) (1707.06347); clip-higher has high > low."""
    ratio = (logp - old_logp).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    clipped = ratio.clamp(1 - settings.low, 1 + settings.high)
    loss = -torch.minimum(ratio * advantages, clipped * advantages)
    low = (ratio < 1 - settings.low) & (advantages < 0)
    high = (ratio > 1 + settings.high) & (advantages > 0)
    return TokenLoss(loss, low, high, ratio)


RATIOS = {"clip": clip}
