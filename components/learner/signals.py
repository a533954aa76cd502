"""What one update did, as scalars. All means are over unmasked response tokens of the whole batch."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from components.config.corrections import Correction, TokenTis
from components.learner.batch import Batch
from components.learner.ranks import Ranks
from components.objectives.corrections import importance
from components.objectives.kl import estimate_k3
from components.objectives.objective import Terms
from components.objectives.tokens import usable

SUMMED = ("entropy", "clip_low", "clip_high", "rejected_share", "nonfinite_tokens", "ratio_mean", "kl_old")
LOW_QUANTILE = 0.1
"""The tokens at which the policy is surest: where they lose their entropy first there is no choice left to reward."""


def mismatch_signals(batch: Batch, correction: Correction | None) -> dict[str, float]:
    """How far the sampler's log-probabilities are from the learner's (nats), before any update.

    ``mismatch_k3`` estimates KL(rollout || old) per token from samples of the rollout; ``ess`` is the effective share
    of tokens under the importance weights, 1 when sampler and learner agree; ``mismatch_server_<n>`` is the
    ``mismatch_k3`` of what one server sampled. All are taken before a correction rejects
    a token; tokens that were not sampled say nothing and are left out.
    """
    if batch.old_logp is None:
        raise ValueError("mismatch needs old_logp")
    drawn = batch.response_mask if batch.forced is None else batch.response_mask & ~batch.forced
    drawn = drawn & usable(batch.old_logp, batch.rollout_logp)
    old, rollout = batch.old_logp[drawn], batch.rollout_logp[drawn]
    if old.numel() == 0:
        return {}
    gap, weight = (old - rollout).abs(), importance(old, rollout)
    found = {
        "mismatch_mean": gap.mean().item(),
        "mismatch_max": gap.max().item(),
        "mismatch_k3": estimate_k3(rollout, old).mean().item(),
        "ess": min(1.0, (weight.sum().square() / (weight.square().sum() * weight.numel())).item()),
    }
    if batch.server is not None:
        k3, server = estimate_k3(rollout, old), batch.server[:, None].expand_as(drawn)[drawn]
        found |= {f"mismatch_server_{n}": k3[server == n].mean().item() for n in sorted(set(server.tolist()))}
    if isinstance(correction, TokenTis):
        found["tis_truncated"] = (weight > correction.cap).float().mean().item()
    return found


def reference_signals(batch: Batch) -> dict[str, float]:
    """``kl_ref``: k3 estimate of KL(policy || reference) in nats per token, of the policy that sampled the batch."""
    if batch.ref_logp is None or batch.old_logp is None:
        return {}
    known = batch.response_mask & usable(batch.old_logp, batch.ref_logp)
    return {"kl_ref": estimate_k3(batch.old_logp, batch.ref_logp)[known].mean().item()} if known.any() else {}


class TokenTotals:
    """Sums over micro-batches, so that the means do not depend on the split."""

    def __init__(self) -> None:
        self._tokens, self._routed, self._agreement = 0, 0, 0.0
        self._ratio_min, self._ratio_max = math.inf, 0.0
        self._entropies: list[Tensor] = []
        self._sums = dict.fromkeys(SUMMED, 0.0)

    def add(self, mask: Tensor, entropy: Tensor, terms: Terms) -> None:
        """Count one micro-batch; ``mask`` and ``entropy`` are ``[B, R]``."""
        if not mask.any():
            return
        self._tokens += int(mask.sum())
        entropies = entropy.detach()[mask].double()
        self._entropies.append(entropies.float().cpu())
        self._sums["entropy"] += entropies.sum().item()
        for name, chosen in (
            ("clip_low", terms.tokens.clipped_low),
            ("clip_high", terms.tokens.clipped_high),
            ("rejected_share", terms.rejected),
            ("nonfinite_tokens", terms.nonfinite),
        ):
            self._sums[name] += int((chosen & mask).sum())
        ratios = terms.tokens.ratio.detach().expand_as(mask)[mask].double()
        self._sums["ratio_mean"] += ratios.sum().item()
        self._sums["kl_old"] += (ratios - 1 - ratios.log()).sum().item()
        self._ratio_min = min(self._ratio_min, ratios.min().item())
        self._ratio_max = max(self._ratio_max, ratios.max().item())

    def add_routing(self, mask: Tensor, agreement: Tensor | None) -> None:
        """Count the routing agreement ``[B, R]`` of one micro-batch, where it is known."""
        if agreement is not None:
            known = agreement[mask & agreement.isfinite()]
            self._routed += known.numel()
            self._agreement += known.double().sum().item()

    def reduce(self, ranks: Ranks) -> None:
        """Turn what every rank has counted into what all of them have."""
        counts = [self._tokens, self._routed, self._agreement, *self._sums.values()]
        tokens, routed, self._agreement, *sums = ranks.total(torch.tensor(counts, dtype=torch.float64)).tolist()
        self._tokens, self._routed, self._sums = int(tokens), int(routed), dict(zip(SUMMED, sums, strict=True))
        extremes = torch.tensor([-self._ratio_min, self._ratio_max], dtype=torch.float64)
        low, self._ratio_max = ranks.largest(extremes).tolist()
        self._ratio_min = -low
        self._entropies = [ranks.joined(torch.cat([torch.zeros(0), *self._entropies]))]

    def means(self) -> dict[str, float]:
        """Means per token; empty when nothing was counted."""
        if not self._tokens:
            return {}
        found = {k: v / self._tokens for k, v in self._sums.items()}
        found |= {"ratio_min": self._ratio_min, "ratio_max": self._ratio_max}
        # Not torch.quantile, which refuses more than 16 million elements.
        found["entropy_p10"] = float(np.quantile(torch.cat(self._entropies).numpy(), LOW_QUANTILE))
        return {**found, "routing_agreement": self._agreement / self._routed} if self._routed else found
