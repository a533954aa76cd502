"""The second half of an MLP: SiLU of one half of the columns times the other half (2002.05202), and the linear layer
that reads it, as one operation that keeps nothing but its input for the way back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from components.policy.lean.products import input_gradient, of_layer, weight_gradient


def gated(both: Tensor, weight: Tensor, bias: Tensor | None, to: Tensor) -> Tensor:
    """``both [N, 2 I]``, gate columns first, and ``weight [out, I]`` -> ``[N, out]`` on top of ``to``."""
    found: Tensor = _Gated.apply(both, weight, bias, to)  # type: ignore[no-untyped-call]
    return found


class _Gated(Function):
    @staticmethod
    def forward(ctx: Any, both: Tensor, weight: Tensor, bias: Tensor | None, to: Tensor) -> Tensor:
        ctx.save_for_backward(both, weight)
        ctx.biased = bias is not None
        gate, up = both.chunk(2, dim=-1)
        return of_layer(functional.silu(gate).mul_(up), weight, bias, to)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        (slope,), (both, weight) = gradients, ctx.saved_tensors
        gate, up = both.chunk(2, dim=-1)
        open_ = functional.silu(gate)
        low = slope.to(both.dtype)
        own = weight_gradient(low, open_ * up).to(weight.dtype) if ctx.needs_input_grad[1] else None
        below = input_gradient(low, weight)
        found = torch.empty_like(both)
        of_gate, of_up = found.chunk(2, dim=-1)
        torch.mul(open_, below, out=of_up)
        torch.mul(below, up, out=of_gate)
        torch.ops.aten.silu_backward.grad_input(of_gate, gate, grad_input=of_gate)
        return found, own, slope.sum(0) if ctx.biased else None, slope
