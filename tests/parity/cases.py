"""Random batches, and our loss on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from components.config.objective import ObjectiveSettings
from components.objectives.advantages import ADVANTAGES, Rewards
from components.objectives.aggregation import AGGREGATIONS
from components.objectives.exploration import SELECTIONS, SelectionInputs
from components.objectives.objective import objective
from components.objectives.tokens import TokenInputs


@dataclass(frozen=True)
class Case:
    """N groups of G completions, B = N x G rows. What stands where ``mask`` is False must not matter.

    ``rewards [B, K]`` are those of K reward functions; a row of NaN could not be scored. ``mask`` may have holes, which
    are what tools wrote; ``lengths`` count them too.
    """

    groups: int
    rewards: Tensor  # [B, K]
    lengths: Tensor  # [B]
    mask: Tensor  # [B, R] bool
    truncated: Tensor  # [B] bool
    logp: Tensor  # [B, R], and so are the rest
    old_logp: Tensor
    rollout_logp: Tensor
    ref_logp: Tensor
    entropy: Tensor

    def __len__(self) -> int:
        return len(self.mask)


TRLS_STD = {"std": "unbiased", "eps": 1e-4}


def settings(**ours: Any) -> ObjectiveSettings:
    """What TRL does by default without vLLM (``loss_type`` dapo), with ``ours`` changed."""
    clip = {"kind": "clip", "low": 0.2, "high": 0.2}
    like_trl = {"advantage": {"kind": "grpo", **TRLS_STD}, "ratio": clip, "correction": None}
    return ObjectiveSettings.model_validate({**like_trl, **ours})


class Found(NamedTuple):
    """The loss that is minimised, its gradient with respect to ``logp`` and ``entropy``, and the advantages ``[B]``."""

    loss: float
    gradient: Tensor
    entropy_gradient: Tensor
    advantages: Tensor


def random_case(
    seed: int, groups: int = 3, size: int = 4, width: int = 9, rewards: int = 1, drift: float = 0.4
) -> Case:
    """Ragged completions with a tool's tokens in every other one, a third of them truncated.

    ``drift`` is the standard deviation of every log-ratio, in nats: 0.4 is on both sides of any clip.
    """
    generator = torch.Generator().manual_seed(seed)
    rows = groups * size

    def noise(scale: float) -> Tensor:
        return scale * torch.randn(rows, width, generator=generator)

    lengths = torch.randint(2, width + 1, (rows,), generator=generator)
    lengths[seed % rows] = width
    position = torch.arange(width)
    mask = position < lengths[:, None]
    mask[::2, 1] = False
    old = -1.5 + noise(0.3)
    return Case(
        groups,
        torch.randn(rows, rewards, generator=generator),
        lengths,
        mask,
        torch.arange(rows) % 3 == 1,
        logp=old + noise(drift),
        old_logp=old,
        rollout_logp=old + noise(drift),
        ref_logp=old + noise(drift),
        entropy=noise(1.0).abs(),
    )


def our_step(case: Case, settings: ObjectiveSettings, micro_batches: int = 1) -> Found:
    """Loss and gradient of the whole batch: weights are made once, micro-batches add up."""
    advantages = our_advantages(case, settings).flatten()
    mask = case.mask & case.rewards.isfinite().any(1, keepdim=True)
    if settings.overlong_filter:
        mask = mask & ~case.truncated[:, None]
    groups = torch.arange(case.groups).repeat_interleave(len(case) // case.groups)
    inputs = TokenInputs(
        mask=mask,
        weights=AGGREGATIONS[settings.aggregation.kind](mask, groups, settings.aggregation),
        advantages=advantages[:, None].expand_as(mask),
        rollout_logp=case.rollout_logp,
        old_logp=case.old_logp,
        ref_logp=case.ref_logp,
        selected=_selected(case, mask, advantages, settings),
    )
    logp, entropy = (values.clone().requires_grad_() for values in (case.logp, case.entropy))
    loss = 0.0
    for rows in torch.arange(len(case)).chunk(micro_batches):
        part = TokenInputs(*(None if values is None else values[rows] for values in inputs))
        terms = objective(logp[rows], part, settings, entropy=entropy[rows])
        terms.loss.backward()
        loss += terms.loss.item()
    gradients = (torch.zeros_like(x) if x.grad is None else x.grad for x in (logp, entropy))
    return Found(loss, *gradients, advantages)


def our_advantages(case: Case, settings: ObjectiveSettings) -> Tensor:
    """``[N, G]``; the reward of a completion is the sum of its parts."""
    scorable = case.rewards.isfinite().any(1)
    parts = case.rewards.nan_to_num(nan=0.0).view(case.groups, -1, case.rewards.shape[1])
    named = {f"part{k}": parts[..., k] for k in range(parts.shape[2])}
    rewards = Rewards(parts.sum(2), parts[..., 0], named, scorable.view(case.groups, -1))
    return ADVANTAGES[settings.advantage.kind](rewards, settings.advantage)


def _selected(case: Case, mask: Tensor, advantages: Tensor, settings: ObjectiveSettings) -> Tensor | None:
    if settings.selection is None:
        return None
    inputs = SelectionInputs(case.old_logp, case.entropy, advantages[:, None].expand_as(mask), mask)
    return SELECTIONS[settings.selection.kind](inputs, settings.selection, torch.Generator().manual_seed(0))


def largest_difference(ours: Found, theirs: Found) -> float:
    """Of the loss, and of any gradient or advantage."""
    pairs = zip(ours[1:], theirs[1:], strict=True)
    return max(abs(ours.loss - theirs.loss), *((a - b).abs().max().item() for a, b in pairs))
