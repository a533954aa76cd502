"""Chance, and what it makes of logits."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import torch
from torch import Tensor

from components.seeds import derive

BLOCK = 512
"""Weights that are summed together at most, a power of two."""


def uniform_numbers(seed: int, groups: Sequence[int], n: int, limit: int, device: torch.device | None = None) -> Tensor:
    """A number in [0, 1) for every token that the rows of a batch may write, ``[groups * n, limit]`` fp64.

    ``n`` rows for each of ``groups``, one group after the other. Each group draws from a stream of its own, by its
    number among all prompts of the call, so that it gets the same whichever prompts share its batch and whenever
    their rows end. They are drawn on the CPU, so that they are the same for every ``device`` that they are moved to.
    """
    uniform = torch.empty(len(groups) * n, limit, dtype=torch.float64)  # fp32 would miss rare tokens
    for place, group in enumerate(groups):
        generator = torch.Generator().manual_seed(derive(seed, "draws", group))
        uniform[place * n : (place + 1) * n].uniform_(generator=generator)
    return uniform.to(device)


def choose(logits: Tensor, temperature: float, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Next token and its log-probability for each row of ``logits`` ``[B, V]``; temperature 0 takes the likeliest.

    A sample is the first token at which the cumulative probability exceeds the row's ``uniform`` number.

    Raises:
        RuntimeError: logits are NaN, or infinite, so that there is no distribution.
    """
    logits = logits.float()
    if temperature == 0:
        logp, chosen = torch.log_softmax(logits, dim=-1).max(dim=-1)
        _refuse_nan(logp)
        return chosen, logp
    largest = logits.amax(-1, keepdim=True)
    weights = logits.sub(largest).div_(temperature).exp_()
    chosen, total = drawn(weights, uniform[:, None])
    _refuse_nan(total)
    logp = logits.gather(-1, chosen).sub_(largest).div_(temperature) - total.log()
    return chosen.squeeze(-1), logp.squeeze(-1).float()


def drawn(weights: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Where the cumulative sum of ``weights`` ``[B, V]`` first exceeds ``uniform`` ``[B, 1]`` of its total; the total.

    Many weights are summed in blocks, and one by one only in the block in which that place is.
    """
    block = gcd(weights.shape[-1], BLOCK)
    if block < BLOCK // 8 or weights.shape[-1] <= 4 * BLOCK:
        chosen, _, total = _place(weights, uniform)
        return chosen, total
    blocks = weights.view(len(weights), -1, block)
    number, rest, total = _place(blocks.sum(-1), uniform)
    own = blocks.gather(1, number[:, :, None].expand(-1, -1, block)).squeeze(1)
    return number * block + _place(own, rest)[0], total


def _place(weights: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where the cumulative sum exceeds ``uniform`` of the total, how much of that weight lies before, as a share of it,
    and the total; all ``[B, 1]``."""
    cumulative = weights.cumsum(-1, dtype=torch.float64)
    total = cumulative[:, -1:]
    threshold = uniform * total
    place = torch.searchsorted(cumulative, threshold, right=True).clamp_(max=weights.shape[-1] - 1)
    weight = weights.gather(-1, place)
    rest = (threshold - cumulative.gather(-1, place) + weight) / weight
    return place, rest.clamp_(0, 1), total


def _refuse_nan(totals: Tensor) -> None:
    """Largest log-probability or sum of weights of each row: NaN where any of its logits is no number or +inf."""
    if bool(totals.isnan().any()):
        raise RuntimeError("the policy's logits are NaN or infinite: there is nothing to sample from")
