"""The products of a linear layer, by the fastest library that PyTorch brings along.

MKL uses half the width of AVX-512 on processors that are not Intel's; oneDNN uses all of it on any. Which one is taken
depends on the processor alone, so that a machine gives the same bits today and tomorrow. PyTorch gives products in
bfloat16 to oneDNN by itself.

Products are made in the precision of what is multiplied: weights are rounded to it for every product, and what is
returned to them is in their own. Sums inside a product are fp32 in either.
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

LARGE = 2**18
"""Numbers of a gradient that is large: 1 MiB in fp32, which leaves a core's cache."""


@cache
def onednn() -> bool:
    """Whether products in fp32 go to oneDNN here."""
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
    """`product` on top of ``to [N, out]``, which stays as it is; in the higher of the two precisions."""
    if not _taken(values):
        return functional.linear(values, weight, bias) + to
    found: Tensor = torch.ops.mkldnn._linear_pointwise.binary(values, to, weight, bias, "add")
    return found


def _taken(values: Tensor) -> bool:
    return len(values) >= FEW and values.dtype == torch.float32 and values.device.type == "cpu" and onednn()


def stacked(tensors: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    """Tensors one below the other, rounded; a single one is not copied for nothing."""
    if len(tensors) == 1:
        return tensors[0].to(dtype)
    if tensors[0].dtype == dtype:
        return torch.cat(list(tensors))
    found = torch.empty(sum(map(len, tensors)), *tensors[0].shape[1:], dtype=dtype)
    for part, tensor in zip(torch.split(found, [len(tensor) for tensor in tensors]), tensors, strict=True):
        part.copy_(tensor)
    return found


def weight_gradient(slope: Tensor, values: Tensor) -> Tensor:
    """``slope.T @ values`` ``[out, in]``. A small one is made with the fewer rows, the faster way round. A large one is
    laid out as the weight is: turned, it would take longer to add up than was saved."""
    outputs, inputs = slope.shape[1], values.shape[1]
    if outputs <= inputs or outputs * inputs >= LARGE:
        return product(slope.T, values.T)
    return product(values.T, slope.T).T


def linear(values: Tensor, weight: Tensor, bias: Tensor | None = None, to: Tensor | None = None) -> Tensor:
    """A linear layer with gradients, ``[N, in]`` -> ``[N, out]``; its result is added to ``to`` where there is one."""
    found: Tensor = _Linear.apply(values, weight, bias, to)  # type: ignore[no-untyped-call]
    return found


class _Linear(Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor, bias: Tensor | None, to: Tensor | None) -> Tensor:
        ctx.save_for_backward(values, weight)
        ctx.parts = bias is not None, to is not None
        return of_layer(values, weight, bias, to)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        (slope,), (values, weight) = gradients, ctx.saved_tensors
        biased, added = ctx.parts
        below, own = layer_gradients(slope, values, weight, ctx.needs_input_grad[:2])
        return below, own, slope.sum(0) if biased else None, slope if added else None


def input_gradient(slope: Tensor, weight: Tensor) -> Tensor:
    """``slope [N, out] @ weight`` ``[N, in]``, in the precision of the slope."""
    return product(slope, weight.to(slope.dtype).T)


def of_layer(values: Tensor, weight: Tensor, bias: Tensor | None, to: Tensor | None) -> Tensor:
    """What a linear layer makes, without a gradient."""
    weight, bias = weight.to(values.dtype), None if bias is None else bias.to(values.dtype)
    return product(values, weight, bias) if to is None else product_added(values, weight, bias, to)


def layer_gradients(
    slope: Tensor, values: Tensor, weight: Tensor, needed: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Those of a linear layer's input, in its precision, and of its weight, where they are ``needed``."""
    slope = slope.to(values.dtype)
    below = input_gradient(slope, weight) if needed[0] else None
    own = weight_gradient(slope, values).to(weight.dtype) if needed[1] else None
    return below, own
