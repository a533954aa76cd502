"""Aggregation: the weight of every token in the loss.

Weights are computed once over the whole optimizer batch, and micro-batches sum weighted token losses. So the gradient
is the same under any split, ragged ones included. Each takes ``mask [B, R]`` (bool) and returns ``[B, R]`` fp32.
"""

from __future__ import annotations

from torch import Tensor


def token_mean(mask: Tensor) -> Tensor:
    """Every token of the batch counts the same (DAPO, 2503.14476)."""
    return mask.float() / mask.sum().clamp(min=1)


def sequence_mean(mask: Tensor) -> Tensor:
    """Mean over the tokens of a completion, then over completions (GRPO, 2402.03300). Empty rows do not count."""
    lengths = mask.sum(1, keepdim=True)
    rows = (lengths > 0).sum().clamp(min=1)
    return mask.float() / lengths.clamp(min=1) / rows


AGGREGATIONS = {"token_mean": token_mean, "sequence_mean": sequence_mean}
