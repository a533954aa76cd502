"""Statistics of groups that may have members which do not count, in double precision."""

from __future__ import annotations

import torch
from torch import Tensor


def centred(values: Tensor, scorable: Tensor) -> Tensor:
    """``values [N, G]`` minus their group's mean over ``scorable [N, G]`` (bool); 0 where that is false.

    A group of equal values, or with fewer than two members that count, is exactly 0 and not rounding noise.
    """
    values = torch.where(scorable, values.double(), 0.0)
    count = scorable.sum(1, keepdim=True)
    difference = torch.where(scorable, values - values.sum(1, keepdim=True) / count.clamp(min=1), 0.0)
    return torch.where(spread(values, scorable) > 0, difference, 0.0)


def deviation(values: Tensor, scorable: Tensor, kind: str) -> Tensor:
    """Standard deviation of each group, ``[N, 1]``: ``population`` or ``unbiased``; 0 where there is none."""
    count = scorable.sum(1, keepdim=True) - int(kind == "unbiased")
    return (centred(values, scorable).square().sum(1, keepdim=True) / count.clamp(min=1)).sqrt()


def standardised(values: Tensor, scorable: Tensor, kind: str, eps: float) -> Tensor:
    """`centred` over (`deviation` + ``eps``), or `centred` alone when ``kind`` is ``none``."""
    difference = centred(values, scorable)
    return difference if kind == "none" else difference / (deviation(values, scorable, kind) + eps)


def batch_deviation(values: Tensor, scorable: Tensor, kind: str) -> Tensor:
    """Standard deviation over the batch, a scalar: of all members of groups in which at least two count."""
    counted = values.double()[scorable & (scorable.sum(1, keepdim=True) > 1)]
    return counted.std(correction=int(kind == "unbiased")) if len(counted) else counted.new_zeros(())


def spread(values: Tensor, scorable: Tensor) -> Tensor:
    """Largest minus smallest value that counts, ``[N, 1]``; -inf in a group without any."""
    if values.shape[1] == 0:
        return values.new_zeros(len(values), 1)
    highest = torch.where(scorable, values, -torch.inf).amax(1, keepdim=True)
    return highest - torch.where(scorable, values, torch.inf).amin(1, keepdim=True)
