"""RMSNorm and the linear layers that read it, as one operation that keeps nothing but its input for the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from components.policy.lean.low import Layer, low_gradients, lowered, raise_onto
from components.policy.lean.norm import divided, norm_gradients
from components.policy.lean.products import product, stacked, weight_gradient


def projected(values: Tensor, scale: Tensor, epsilon: float, layers: Sequence[Layer], dtype: torch.dtype) -> Tensor:
    """Several linear layers of the normed ``values [N, in]`` as one product, their outputs side by side.

    Args:
        scale: The weight of the norm, ``[in]``.
        layers: All of them with a bias, or none.
        dtype: Precision of the product and of what it returns.
    """
    weights = [layer.weight for layer in layers]
    biases = [layer.bias for layer in layers if layer.bias is not None]
    lows = {place: layer.low for place, layer in enumerate(layers) if layer.low is not None}
    factors = [low.down for low in lows.values()] + [low.up for low in lows.values()]
    places = tuple(lows)
    found: Tensor = _Projected.apply(  # type: ignore[no-untyped-call]
        values, scale, epsilon, dtype, len(weights), places, *weights, *factors, *biases
    )
    return found


class _Projected(Function):
    """Norms once more on the way back, and puts the weights together once more: kept until then, both would be copies
    of what is there anyway."""

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        scale: Tensor,
        epsilon: float,
        dtype: torch.dtype,
        layers: int,
        places: tuple[int, ...],
        *tensors: Tensor,
    ) -> Tensor:
        """``places`` are the numbers of the layers with an adapter."""
        weights, downs, ups, biases = cut(tensors, layers, len(places), len(places))
        read = functional.rms_norm(values, scale.shape, scale, epsilon).to(dtype)
        found = product(read, stacked(weights, dtype), stacked(biases, dtype) if biases else None)
        lows = lowered(read, downs)
        columns = torch.split(found, [len(weight) for weight in weights], dim=1)
        for place, low, up in zip(places, lows, ups, strict=True):
            raise_onto(columns[place], low, up)
        ctx.save_for_backward(values, scale, *weights, *downs, *ups, *lows)
        ctx.epsilon, ctx.dtype, ctx.biased, ctx.layers, ctx.places = epsilon, dtype, bool(biases), layers, places
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        (slope,), (values, scale, *tensors), adapters = gradients, ctx.saved_tensors, len(ctx.places)
        weights, downs, ups, lows = cut(tensors, ctx.layers, adapters, adapters)
        widths, learned = [len(weight) for weight in weights], any(ctx.needs_input_grad[FIRST : FIRST + ctx.layers])
        below = product(slope, stacked(weights, ctx.dtype).T)
        unit, divisor = divided(values, ctx.epsilon)
        own: Sequence[Tensor | None] = [None] * len(widths)
        of_factors: list[Tensor] = []
        if learned or downs:
            read = (unit * scale).to(ctx.dtype)
        if learned:
            own = torch.split(weight_gradient(slope, read).to(weights[0].dtype), widths)
        if downs:
            columns = torch.split(slope, widths, dim=1)
            more, of_downs, of_ups = low_gradients([columns[place] for place in ctx.places], read, lows, downs, ups)
            below, of_factors = below.add_(more), [*of_downs, *of_ups]
        bias = torch.split(slope.sum(0, dtype=values.dtype), widths) if ctx.biased else []
        of_values = norm_gradients(below.to(values.dtype), unit, divisor, scale)
        return *of_values, None, None, None, None, *own, *of_factors, *bias


FIRST = 6
"""The first of the tensors among what `_Projected.forward` takes."""


def cut(tensors: Sequence[Tensor], *sizes: int) -> list[Sequence[Tensor]]:
    """Runs of so many tensors, and what is left."""
    found = []
    for size in sizes:
        found.append(tensors[:size])
        tensors = tensors[size:]
    return [*found, tensors]
