"""The products of a linear layer, by the fastest library for fp32 that PyTorch brings along.

MKL uses half the width of AVX-512 on processors that are not Intel's; oneDNN uses all of it on any. Which one is taken
depends on the processor alone, so that a machine gives the same bits today and tomorrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

SIZES = 16
"""The number of rows is filled up to a multiple of it: oneDNN makes a program for every size that it has not met, which
takes longer than a small product does."""
FEW = 32
"""Products of fewer rows stay with MKL: to fill them up would cost more than oneDNN saves."""


@cache
def onednn() -> bool:
    """Whether products go to oneDNN here."""
    return (
        torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def product(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``values [N, in] @ weight.T + bias`` of ``weight [out, in]``, without a gradient; both may be views."""
    if not _taken(values):
        return functional.linear(values, weight, bias)
    missing = -len(values) % SIZES
    whole = functional.pad(values, (0, 0, 0, missing)) if missing else values
    found: Tensor = torch.ops.mkldnn._linear_pointwise(whole, weight, bias, "none", [], "")
    return found[: len(values)] if missing else found


def product_added(values: Tensor, weight: Tensor, bias: Tensor | None, to: Tensor) -> Tensor:
    """`product` on top of ``to [N, out]``, which stays as it is."""
    if not _taken(values):
        return functional.linear(values, weight, bias) + to
    found: Tensor = torch.ops.mkldnn._linear_pointwise.binary(values, to, weight, bias, "add")
    return found


def _taken(values: Tensor) -> bool:
    return len(values) >= FEW and values.dtype == torch.float32 and values.device.type == "cpu" and onednn()


def linear(values: Tensor, weight: Tensor, bias: Tensor | None = None, to: Tensor | None = None) -> Tensor:
    """A linear layer with gradients, ``[N, in]`` -> ``[N, out]``; its result is added to ``to`` where there is one."""
    found: Tensor = _Linear.apply(values, weight, bias, to)  # type: ignore[no-untyped-call]
    return found


class _Linear(Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor, bias: Tensor | None, to: Tensor | None) -> Tensor:
        ctx.save_for_backward(values, weight)
        ctx.parts = bias is not None, to is not None
        return product(values, weight, bias) if to is None else product_added(values, weight, bias, to)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        (slope,), (values, weight) = gradients, ctx.saved_tensors
        biased, added = ctx.parts
        below = product(slope, weight.T) if ctx.needs_input_grad[0] else None
        own = weight_gradient(slope, values) if ctx.needs_input_grad[1] else None
        return below, own, slope.sum(0) if biased else None, slope if added else None


def joined(values: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> Tensor:
    """Several linear layers of one input as one product, their outputs side by side. ``biases``: one each, or none."""
    found: Tensor = _Joined.apply(values, len(weights), *weights, *biases)  # type: ignore[no-untyped-call]
    return found


class _Joined(Function):
    """Puts the weights together once more on the way back: kept until then, they would be a second copy of them."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, layers: int, *tensors: Tensor) -> Tensor:
        weights, biases = tensors[:layers], tensors[layers:]
        ctx.save_for_backward(values, *weights)
        ctx.biased = bool(biases)
        return product(values, torch.cat(weights), torch.cat(biases) if biases else None)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        (slope,), (values, *weights) = gradients, ctx.saved_tensors
        widths = [len(weight) for weight in weights]
        below = product(slope, torch.cat(weights).T) if ctx.needs_input_grad[0] else None
        learned = any(ctx.needs_input_grad[2:])
        own = torch.split(weight_gradient(slope, values), widths) if learned else [None] * len(widths)
        bias = torch.split(slope.sum(0), widths) if ctx.biased else []
        return below, None, *own, *bias


def weight_gradient(slope: Tensor, values: Tensor) -> Tensor:
    """``slope.T @ values`` ``[out, in]``. The sum over tokens is long and the result small: it is made with the fewer
    rows, the faster way round."""
    if slope.shape[1] <= values.shape[1]:
        return product(slope.T, values.T)
    return product(values.T, slope.T).T
