"""A bound on what one completion may teach."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Capped(NamedTuple):
    """Advantages within the bound, and the share of those other than 0 that it changed."""

    advantages: Tensor
    share: float


def cap(advantages: Tensor, limit: float) -> Capped:
    """Advantages of any shape, cut to at most ``limit`` in size; the sign stays.

    The only winner among 128 has an advantage of 11 and drives the whole update, which is how one mislabelled prompt
    can turn a policy (2606.10931); 4 is a good bound. A capped group no longer adds up to 0.
    """
    hit = int((advantages.abs() > limit).sum())
    return Capped(advantages.clamp(-limit, limit), hit / max(1, int((advantages != 0).sum())))
