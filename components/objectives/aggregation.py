"""Aggregation: the weight of every token in the loss.

Weights are computed once over the whole optimizer batch, and micro-batches sum weighted token losses. So the gradient
is the same under any split, ragged ones included. Each takes ``mask [B, R]`` (bool), ``groups [B]`` (which prompt a row
belongs to) and its settings, and returns ``[B, R]`` fp32. Rows without a token do not count anywhere.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from components.config.objective import FixedAggregation, MeanAggregation


def token_mean(mask: Tensor, groups: Tensor, settings: MeanAggregation) -> Tensor:
    """Every token of the batch counts the same (DAPO, 2503.14476)."""
    return mask.float() / mask.sum().clamp(min=1)


def sequence_mean(mask: Tensor, groups: Tensor, settings: MeanAggregation) -> Tensor:
    """Mean over the tokens of a completion, then over completions (GRPO, 2402.03300)."""
    lengths = mask.sum(1, keepdim=True)
    return mask.float() / lengths.clamp(min=1) / _rows(mask)


def prompt_mean(mask: Tensor, groups: Tensor, settings: MeanAggregation) -> Tensor:
    """Mean over the tokens of all completions of a prompt, then over prompts (ScaleRL, 2510.13786)."""
    _, group = torch.unique(groups, return_inverse=True)
    tokens = torch.zeros(len(groups), device=mask.device).index_add(0, group, mask.sum(1).float())
    prompts = (tokens > 0).sum().clamp(min=1)
    return mask.float() / tokens.clamp(min=1)[group][:, None] / prompts


def fixed(mask: Tensor, groups: Tensor, settings: FixedAggregation) -> Tensor:
    """1 / (completions x a constant): a token's weight depends on no length at all (Dr. GRPO, 2503.20783)."""
    return mask.float() / (_rows(mask) * settings.tokens)


def _rows(mask: Tensor) -> Tensor:
    return mask.any(1).sum().clamp(min=1)


AGGREGATIONS: dict[str, Callable[..., Tensor]] = {
    "token_mean": token_mean,
    "sequence_mean": sequence_mean,
    "prompt_mean": prompt_mean,
    "fixed": fixed,
}
