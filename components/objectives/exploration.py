"""What keeps a policy exploring: tokens that are singled out, from what is known before a batch's first update.

By covariance (Clip-Cov, KL-Cov) or by entropy. The entropy bonus is a term of the objective; its adaptive coefficient
is in `components.objectives.controllers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from components.config.exploration import ClipCov, KlCov, TopEntropy
from components.objectives.tokens import usable


class SelectionInputs(NamedTuple):
    """The whole optimizer batch, all ``[B, R]``; ``mask`` is bool."""

    old_logp: Tensor
    entropy: Tensor
    advantages: Tensor
    mask: Tensor


def covariance(inputs: SelectionInputs) -> Tensor:
    """(log pi - mean)(A - mean) per token, means over the mask; 0 outside. Entropy falls with its sum (2505.22617).

    A token whose log-probability or advantage is not finite is treated like a masked one.
    """
    counted = inputs.mask & usable(inputs.old_logp, inputs.advantages)
    logp, advantages = (torch.where(counted, values, 0.0) for values in (inputs.old_logp, inputs.advantages))
    count = counted.sum().clamp(min=1)
    return torch.where(counted, (logp - logp.sum() / count) * (advantages - advantages.sum() / count), 0.0)


def clip_cov(inputs: SelectionInputs, settings: ClipCov, generator: torch.Generator) -> Tensor:
    """Tokens that keep their gradient: all but a share, drawn from those with a covariance inside the band."""
    values = covariance(inputs)
    candidates = ((values > settings.low) & (values < settings.high) & inputs.mask).flatten().nonzero().squeeze(-1)
    order = torch.randperm(len(candidates), generator=generator).to(candidates.device)
    chosen = candidates[order[: _number(inputs.mask, settings.share)]]
    kept = inputs.mask.flatten().clone()
    kept[chosen] = False
    return kept.view_as(inputs.mask)


def kl_cov(inputs: SelectionInputs, settings: KlCov, generator: torch.Generator) -> Tensor:
    """Tokens that are penalised: the share with the highest covariance."""
    return _highest(covariance(inputs), inputs.mask, settings.share)


def top_entropy(inputs: SelectionInputs, settings: TopEntropy, generator: torch.Generator) -> Tensor:
    """Tokens that keep their gradient: the share with the highest entropy, over the whole batch (2506.01939)."""
    return _highest(inputs.entropy, inputs.mask, settings.share)


def _highest(values: Tensor, mask: Tensor, share: float) -> Tensor:
    """The ``share`` of the unmasked tokens with the highest values; ties go to the earlier token, NaN comes last."""
    candidates = mask & usable(values)
    ranked = torch.where(candidates, values, -torch.inf).flatten().argsort(descending=True, stable=True)
    chosen = torch.zeros_like(mask).flatten()
    chosen[ranked[: _number(mask, share)]] = True
    return chosen.view_as(mask) & candidates


def _number(mask: Tensor, share: float) -> int:
    """How many tokens the ``share`` of all unmasked ones is; at least one."""
    return max(1, round(share * int(mask.sum())))


SELECTIONS: dict[str, Callable[..., Tensor]] = {"clip_cov": clip_cov, "kl_cov": kl_cov, "top_entropy": top_entropy}
