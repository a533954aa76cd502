"""One weight per sequence. "Sequence" alone is ambiguous in the field, so every name says product or geometric.

A product of ratios over a long completion is far from 1 at the smallest bias: 0.001 nats a token over 8,192 tokens is a
factor of 3,600. The geometric mean does not depend on the length.
"""

from __future__ import annotations

import math

from torch import Tensor

from components.config.corrections import OffPolicyMask, SequenceMask, SequenceTis
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
    return _kept(product(old_logp, rollout_logp, mask), old_logp - rollout_logp, mask, settings)


def mask_sequence_geometric(old_logp: Tensor, rollout_logp: Tensor, mask: Tensor, settings: SequenceMask) -> Tensor:
    """1 where the geometric mean is inside the window and no token has a veto, else 0."""
    return _kept(geometric(old_logp, rollout_logp, mask), old_logp - rollout_logp, mask, settings)


def _kept(ratio: Tensor, gaps: Tensor, mask: Tensor, settings: SequenceMask) -> Tensor:
    """Which sequences are kept; a veto has a token that is all but impossible for the trainer."""
    kept = (ratio >= settings.low) & (ratio <= settings.high)
    if settings.veto is not None:
        kept = kept & ~((gaps < math.log(settings.veto)) & mask).any(1, keepdim=True)
    return kept.float().expand_as(gaps)


def off_policy_mask(
    logp: Tensor, rollout_logp: Tensor, advantages: Tensor, mask: Tensor, settings: OffPolicyMask
) -> Tensor:
    """OPSM, the off-policy sequence mask of DeepSeek-V3.2 (2512.02556).

    0 where A < 0 and mean_t(log pi_rollout - log pi) > delta, else 1; ``[B, R]``.

    As in the paper it is measured from the sampler: updates of this step, weights that were stale when the completion
    was sampled, and the gap between sampler and learner count alike. A sequence that the policy has already left needs
    no further push away from it; its gradient is only noise.
    """
    left = mean_per_sequence(rollout_logp - logp.detach(), mask) > settings.delta
    return (~(left & (advantages < 0))).float()
