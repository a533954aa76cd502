"""OPSM, the off-policy sequence mask of DeepSeek-V3.2 (2512.02556)."""

from __future__ import annotations

from torch import Tensor

from components.config.corrections import OffPolicyMask
from components.objectives.tokens import mean_per_sequence


def off_policy_mask(
    logp: Tensor, rollout_logp: Tensor, advantages: Tensor, mask: Tensor, settings: OffPolicyMask
) -> Tensor:
    """0 where A < 0 and mean_t(log pi_rollout - log pi) > delta, else 1; ``[B, R]``.

    As in the paper it is measured from the sampler: updates of this step, weights that were stale when the completion
    was sampled, and the gap between sampler and learner count alike. A sequence that the policy has already left needs
    no further push away from it; its gradient is only noise.
    """
    left = mean_per_sequence(rollout_logp - logp.detach(), mask) > settings.delta
    return (~(left & (advantages < 0))).float()
