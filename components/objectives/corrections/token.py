"""One weight per token."""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.corrections import IcePop, TokenTis
from components.objectives.tokens import log_ratio


def importance(old_logp: Tensor, rollout_logp: Tensor) -> Tensor:
    """pi_old / pi_rollout per token."""
    return log_ratio(old_logp, rollout_logp).exp()


def tis_token(old_logp: Tensor, rollout_logp: Tensor, mask: Tensor, settings: TokenTis) -> Tensor:
    """Truncated importance sampling, min(pi_old / pi_rollout, cap)."""
    return importance(old_logp, rollout_logp).clamp(max=settings.cap)


def icepop(old_logp: Tensor, rollout_logp: Tensor, mask: Tensor, settings: IcePop) -> Tensor:
    """The ratio where it is inside the window, else 0 (2510.18855); also known as token-level MIS."""
    ratio = importance(old_logp, rollout_logp)
    return torch.where((ratio >= settings.low) & (ratio <= settings.high), ratio, 0.0)
