"""What one update did, as scalars. All means are over unmasked response tokens of the whole batch."""

from __future__ import annotations

import torch
from torch import Tensor

from components.learner.batch import Batch
from components.objectives.corrections import importance
from components.objectives.kl import k3
from components.objectives.ratios import TokenLoss


def mismatch_signals(batch: Batch, cap: float | None) -> dict[str, float]:
    """How far the sampler's log-probabilities are from the learner's (nats), before any update.

    ``mismatch_k3`` estimates KL(rollout || old) per token from samples of the rollout; ``ess`` is the effective share
    of tokens under the importance weights, 1 when sampler and learner agree.
    """
    if batch.old_logp is None:
        raise ValueError("mismatch needs old_logp")
    old, rollout = batch.old_logp[batch.response_mask], batch.rollout_logp[batch.response_mask]
    if old.numel() == 0:
        return {}
    gap, weight = (old - rollout).abs(), importance(old, rollout)
    found = {
        "mismatch_mean": gap.mean().item(),
        "mismatch_max": gap.max().item(),
        "mismatch_k3": k3(rollout, old).mean().item(),
        "ess": min(1.0, (weight.sum().square() / (weight.square().sum() * weight.numel())).item()),
    }
    return found if cap is None else {**found, "tis_truncated": (weight > cap).float().mean().item()}


def reference_signals(batch: Batch) -> dict[str, float]:
    """``kl_ref``: k3 estimate of KL(policy || reference) in nats per token, of the policy that sampled the batch."""
    if batch.ref_logp is None or batch.old_logp is None or not batch.response_mask.any():
        return {}
    return {"kl_ref": k3(batch.old_logp, batch.ref_logp)[batch.response_mask].mean().item()}


class TokenTotals:
    """Sums over micro-batches, so that the means do not depend on the split."""

    def __init__(self) -> None:
        self._tokens, self._sums, self._ratio_max = 0, dict.fromkeys(("entropy", "clip_low", "clip_high"), 0.0), 0.0

    def add(self, mask: Tensor, entropy: Tensor, tokens: TokenLoss) -> None:
        """Count one micro-batch; all tensors are ``[B, R]``."""
        if not mask.any():
            return
        self._tokens += int(mask.sum())
        self._sums["entropy"] += entropy[mask].double().sum().item()
        self._sums["clip_low"] += int((tokens.clipped_low & mask).sum())
        self._sums["clip_high"] += int((tokens.clipped_high & mask).sum())
        self._ratio_max = max(self._ratio_max, torch.where(mask, tokens.ratio.detach(), 0.0).max().item())

    def means(self) -> dict[str, float]:
        """Means per token; empty when nothing was counted."""
        if not self._tokens:
            return {}
        return {**{k: v / self._tokens for k, v in self._sums.items()}, "ratio_max": self._ratio_max}
