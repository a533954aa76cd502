"""One weight per sequence. "Sequence" alone is ambiguous in the field, so every name says product or geometric.

A product of ratios over a long completion is far from 1 at the smallest bias: 0.001 nats a token over 8,192 tokens is a
factor of 3,600. The geometric mean does not depend on the length.
"""

from __future__ import annotations

import math

from torch import Tensor

from components.config.corrections import SequenceMask, SequenceTis
from components.objectives.tokens import MAX_LOG_RATIO, mean_per_sequence


def product(old_logp: Tensor, rollout_logp: Tensor, mask: Tensor) -> Tensor:
    """pi_old(y) / pi_rollout(y) of the whole completion, ``[B, 1]``."""
    total = mean_per_sequence(old_logp - rollout_logp, mask) * mask.sum(1, keepdim=True)
    return total.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def geometric(old_logp: Tensor, rollout_logp: Tensor, mask: Tensor) -> Tensor:
    """Its |y|-th root, the geometric mean of the token ratios, ``[B, 1]``."""
    return mean_per_sequence(old_logp - rollout_logp, mask).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def tis_sequence_product(old_logp: Tensor, rollout_logp: Tensor, mask: Tensor, settings: SequenceTis) -> Tensor:
    """min(product, cap)."""
    return product(old_logp, rollout_logp, mask).clamp(max=settings.cap).expand_as(old_logp)


def tis_sequence_geometric(old_logp: Tensor, rollout_logp: Tensor, mask: Tensor, settings: SequenceTis) -> Tensor:
    """min(geometric mean, cap)."""
    return geometric(old_logp, rollout_logp, mask).clamp(max=settings.cap).expand_as(old_logp)


def mask_sequence_product(old_logp: Tensor, rollout_logp: Tensor, mask: Tensor, settings: SequenceMask) -> Tensor:
    """1 where the product is inside the window and no token has a veto, else 0."""
    kept = _inside(product(old_logp, rollout_logp, mask), settings) & ~_vetoed(old_logp, rollout_logp, mask, settings)
    return kept.float().expand_as(old_logp)


def mask_sequence_geometric(old_logp: Tensor, rollout_logp: Tensor, mask: Tensor, settings: SequenceMask) -> Tensor:
    """1 where the geometric mean is inside the window and no token has a veto, else 0."""
    kept = _inside(geometric(old_logp, rollout_logp, mask), settings) & ~_vetoed(old_logp, rollout_logp, mask, settings)
    return kept.float().expand_as(old_logp)


def _inside(ratio: Tensor, settings: SequenceMask) -> Tensor:
    return (ratio >= settings.low) & (ratio <= settings.high)


def _vetoed(old_logp: Tensor, rollout_logp: Tensor, mask: Tensor, settings: SequenceMask) -> Tensor:
    """Whether a token of the sequence is all but impossible for the trainer, ``[B, 1]`` bool."""
    if settings.veto is None:
        return mask.new_zeros(len(mask), 1)
    return ((old_logp - rollout_logp < math.log(settings.veto)) & mask).any(1, keepdim=True)
