"""RMSNorm and the linear layers that read it, as one operation that keeps nothing but its input for the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from components.policy.lean.norm import divided, norm_gradients
from components.policy.lean.products import product, stacked, weight_gradient


def projected(
    values: Tensor,
    scale: Tensor,
    epsilon: float,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    dtype: torch.dtype,
) -> Tensor:
    """Several linear layers of the normed ``values [N, in]`` as one product, their outputs side by side.

    Args:
        scale: The weight of the norm, ``[in]``.
        biases: One of each layer, or none.
        dtype: Precision of the product and of what it returns.
    """
    found: Tensor = _Projected.apply(  # type: ignore[no-untyped-call]
        values, scale, epsilon, dtype, len(weights), *weights, *biases
    )
    return found


class _Projected(Function):
    """Norms once more on the way back, and puts the weights together once more: kept until then, both would be copies
    of what is there anyway."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, scale: Tensor, epsilon: float, dtype: torch.dtype, layers: int, *tensors: Tensor
    ) -> Tensor:
        weights, biases = tensors[:layers], tensors[layers:]
        ctx.save_for_backward(values, scale, *weights)
        ctx.epsilon, ctx.dtype, ctx.biased = epsilon, dtype, bool(biases)
        read = functional.rms_norm(values, scale.shape, scale, epsilon).to(dtype)
        return product(read, stacked(weights, dtype), stacked(biases, dtype) if biases else None)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        (slope,), (values, scale, *weights) = gradients, ctx.saved_tensors
        widths = [len(weight) for weight in weights]
        below = product(slope, stacked(weights, ctx.dtype).T).to(values.dtype)
        unit, divisor = divided(values, ctx.epsilon)
        own: Sequence[Tensor | None] = [None] * len(widths)
        if any(ctx.needs_input_grad[5:]):
            read = (unit * scale).to(ctx.dtype)
            own = torch.split(weight_gradient(slope, read).to(weights[0].dtype), widths)
        bias = torch.split(slope.sum(0, dtype=values.dtype), widths) if ctx.biased else []
        return *norm_gradients(below, unit, divisor, scale), None, None, None, *own, *bias
