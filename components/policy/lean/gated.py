"""The gate of an MLP: SiLU of one half of the columns times the other half (2002.05202)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional


def gated(both: Tensor) -> Tensor:
    """``[N, 2 I]``, gate columns first -> ``[N, I]``."""
    found: Tensor = _Gated.apply(both)  # type: ignore[no-untyped-call]
    return found


class _Gated(Function):
    @staticmethod
    def forward(ctx: Any, both: Tensor) -> Tensor:
        ctx.save_for_backward(both)
        gate, up = both.chunk(2, dim=-1)
        return functional.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tensor:
        (slope,), (both,) = gradients, ctx.saved_tensors
        gate, up = both.chunk(2, dim=-1)
        found = torch.empty_like(both)
        of_gate, of_up = found.chunk(2, dim=-1)
        torch.mul(functional.silu(gate), slope, out=of_up)
        torch.mul(slope, up, out=of_gate)
        torch.ops.aten.silu_backward.grad_input(of_gate, gate, grad_input=of_gate)
        return found
