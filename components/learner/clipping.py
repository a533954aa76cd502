"""The norm of a gradient, and clipping by it: exact enough that it does not depend on how the gradient is spread."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

ROW = 1024
"""Squares of so many elements are summed in fp32, their sums in fp64: as fast as fp32 alone, which is off by up to 1e-3
for tensors of some million elements on a CPU, and by 1e-8 at most of what fp64 finds."""


def sum_of_squares(gradients: Sequence[Tensor]) -> Tensor:
    """Of all elements of all tensors; fp64, no dimension."""
    if not gradients:
        return torch.zeros((), dtype=torch.float64)
    return torch.cat([norms for gradient in gradients for norms in _norms(gradient.flatten())]).double().square().sum()


def _norms(flat: Tensor) -> tuple[Tensor, Tensor]:
    """Norms of a tensor's whole rows, and of what is left of it."""
    whole, dtype = len(flat) - len(flat) % ROW, torch.promote_types(flat.dtype, torch.float32)
    rows = torch.linalg.vector_norm(flat[:whole].view(-1, ROW), dim=1, dtype=dtype)
    return rows, torch.linalg.vector_norm(flat[whole:], dtype=dtype)[None]


def clip(gradients: Sequence[Tensor], norm: float, limit: float) -> None:
    """Scale a gradient of this norm down to ``limit``, in place, by the rule of ``torch.nn.utils.clip_grad_norm_``."""
    scale = limit / (norm + 1e-6)
    if scale < 1:
        for gradient in gradients:
            gradient.mul_(scale)
