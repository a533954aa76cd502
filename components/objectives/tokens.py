"""What every part of the objective works on."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

MAX_LOG_RATIO = 20.0
"""Log-ratios are clamped here before exp; e^20 is far outside any trust region. Beyond it the gradient is 0."""
UNUSABLE = 1e6
"""No log-probability (nats) and no advantage is that large. From here on sums, squares and products could overflow."""


class TokenInputs(NamedTuple):
    """What the objective needs of a (micro-)batch besides the current log-probabilities, all ``[B, R]``.

    ``weights`` come from the aggregation; they hold the denominators of the whole optimizer batch, so that losses of
    micro-batches add up. ``old_logp``, ``rollout_logp`` and ``ref_logp`` never stand in for each other.
    """

    mask: Tensor  # bool, tokens that the policy sampled and that count
    weights: Tensor
    advantages: Tensor
    rollout_logp: Tensor
    old_logp: Tensor
    ref_logp: Tensor | None = None
    forced: Tensor | None = None  # bool, tokens that were not drawn from the sampler's distribution
    selected: Tensor | None = None  # bool, what `exploration` chose


class TokenLoss(NamedTuple):
    """``loss [B, R]`` per token, the two clip indicators (bool: whose gradient the clip removed) and the ratio."""

    loss: Tensor
    clipped_low: Tensor
    clipped_high: Tensor
    ratio: Tensor


def usable(*arrays: Tensor) -> Tensor:
    """Where all of them are finite and below `UNUSABLE`, bool."""
    return torch.stack([values.detach().abs() < UNUSABLE for values in arrays]).all(0)


def log_ratio(logp: Tensor, other: Tensor) -> Tensor:
    """log pi - log pi_other per token, clamped."""
    return (logp - other).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)


def mean_per_sequence(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the unmasked tokens of each row, ``[B, 1]``; 0 for a row without any."""
    return torch.where(mask, values, 0.0).sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)
