"""Corrections for the gap between the sampler's and the trainer's log-probabilities.

Each takes ``old_logp`` and ``rollout_logp`` ``[B, R]`` and returns weights ``[B, R]`` that multiply the token loss
outside the clip; no gradient flows through them.
"""

from __future__ import annotations

from torch import Tensor

from components.config.objective import TokenTis
from components.objectives.ratios import MAX_LOG_RATIO


def importance(old_logp: Tensor, rollout_logp: Tensor) -> Tensor:
    """pi_old / pi_rollout per token."""
    return (old_logp - rollout_logp).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def tis_token(old_logp: Tensor, rollout_logp: Tensor, settings: TokenTis) -> Tensor:
    """Truncated importance sampling, min(pi_old / pi_rollout, cap), per token."""
    return importance(old_logp, rollout_logp).clamp(max=settings.cap).detach()


CORRECTIONS = {"tis_token": tis_token}
