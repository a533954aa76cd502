"""The second half of an MLP: SiLU of one half of the columns times the other half (2002.05202), and the linear layer
that reads it, as one operation that keeps nothing but its input for the way back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from components.policy.lean.low import Layer, low_gradients, lowered, raise_onto
from components.policy.lean.products import input_gradient, of_layer, weight_gradient


def gated(both: Tensor, layer: Layer, to: Tensor) -> Tensor:
    """``both [N, 2 I]``, gate columns first, and a weight ``[out, I]`` -> ``[N, out]`` on top of ``to``."""
    weight, bias, low = layer
    found: Tensor = _Gated.apply(both, weight, bias, to, *(low or ()))  # type: ignore[no-untyped-call]
    return found


class _Gated(Function):
    @staticmethod
    def forward(ctx: Any, both: Tensor, weight: Tensor, bias: Tensor | None, to: Tensor, *low: Tensor) -> Tensor:
        gate, up = both.chunk(2, dim=-1)
        read = functional.silu(gate).mul_(up)
        found = of_layer(read, weight, bias, to)
        lows = lowered(read, low[:1])
        for columns, factor in zip(lows, low[1:], strict=True):
            raise_onto(found, columns, factor)
        ctx.save_for_backward(both, weight, *low, *lows)
        ctx.biased = bias is not None
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        (slope,), (both, weight, *low) = gradients, ctx.saved_tensors
        gate, up = both.chunk(2, dim=-1)
        open_ = functional.silu(gate)
        rounded = slope.to(both.dtype)
        own = weight_gradient(rounded, open_ * up).to(weight.dtype) if ctx.needs_input_grad[1] else None
        below = input_gradient(rounded, weight)
        of_low: list[Tensor] = []
        if low:
            more, of_a, of_b = low_gradients([rounded], open_ * up, low[2:], low[:1], low[1:2])
            below, of_low = below.add_(more), [*of_a, *of_b]
        found = torch.empty_like(both)
        of_gate, of_up = found.chunk(2, dim=-1)
        torch.mul(open_, below, out=of_up)
        torch.mul(below, up, out=of_gate)
        torch.ops.aten.silu_backward.grad_input(of_gate, gate, grad_input=of_gate)
        return found, own, slope.sum(0) if ctx.biased else None, slope, *of_low
