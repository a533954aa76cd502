"""OPSM, the off-policy sequence mask of DeepSeek-V3.2 (2512.02556)."""

from __future__ import annotations

from torch import Tensor

from components.config.corrections import OffPolicyMask
from components.objectives.tokens import mean_per_sequence


def off_policy_mask(
    logp: Tensor, old_logp: Tensor, advantages: Tensor, mask: Tensor, settings: OffPolicyMask
) -> Tensor:
    """0 where A < 0 and mean_t(log pi_old - log pi) > delta, else 1; ``[B, R]``.

    A sequence that the policy has already left needs no further push away from it; its gradient is only noise.
    """
    left = mean_per_sequence(old_logp - logp.detach(), mask) > settings.delta
    return (~(left & (advantages < 0))).float()
