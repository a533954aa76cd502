"""RMSNorm (1910.07467) with a backward pass that makes one array where a chain of operations makes six."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional


def normed(values: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """``values [..., D]`` divided by their root mean square, times ``weight [D]``."""
    found: Tensor = _Norm.apply(values, weight, epsilon)  # type: ignore[no-untyped-call]
    return found


class _Norm(Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        ctx.save_for_backward(values, weight)
        ctx.epsilon = epsilon
        return functional.rms_norm(values, weight.shape, weight, epsilon)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor, None]:
        (slope,), (values, weight) = gradients, ctx.saved_tensors
        unit, scale = divided(values, ctx.epsilon)
        return *norm_gradients(slope, unit, scale, weight), None


def divided(values: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """``values [..., D]`` divided by their root mean square, and by what they were multiplied for it ``[..., 1]``."""
    norms = torch.linalg.vector_norm(values, dim=-1, keepdim=True)
    scale = norms.square_().div_(values.shape[-1]).add_(epsilon).rsqrt_()
    return values * scale, scale


def norm_gradients(slope: Tensor, unit: Tensor, scale: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Those of the values that `divided` was given, and of the weight."""
    product = slope * unit
    of_weight = product.flatten(0, -2).sum(0)
    along = product.mul_(weight).mean(-1, keepdim=True)
    of_values = torch.mul(slope, weight, out=product).addcmul_(unit, along, value=-1).mul_(scale)
    return of_values, of_weight
