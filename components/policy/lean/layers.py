"""The layers of a block, each with its gradient: RMSNorm (1910.07467); RMSNorm with the linear layers that read it; and
the second half of an MLP, SiLU of one half of the columns times the other half (2002.05202), with the linear layer that
reads it. The last two are one operation each, which keeps nothing but its input for the way back.

Linear layers may have low-rank adapters (2106.09685): ``(alpha / rank) B @ A`` on top of a weight. The two factors are
multiplied by values one after the other, as `peft` does it; their product is never made. A frozen weight gets no
gradient, so that an update with an adapter is less work than one of all weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional

from components.policy.lean.products import input_gradient, of_layer, product, stacked, weight_gradient


def normed(values: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """``values [..., D]`` divided by their root mean square, times ``weight [D]``."""
    found: Tensor = _Norm.apply(values, weight, epsilon)  # type: ignore[no-untyped-call]
    return found


class _Norm(Function):
    """With a backward pass that makes one array where a chain of operations makes six."""

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


ADAPTED = "peft.tuners.lora.layer.Linear"
"""A linear layer with adapters, by name: processes without one need not load `peft`."""


class Low(NamedTuple):
    """The adapter of one linear layer."""

    down: Tensor
    """A ``[rank, in]``."""
    up: Tensor
    """B ``[out, rank]``, scaled."""


class Layer(NamedTuple):
    """What a linear layer computes with."""

    weight: Tensor
    bias: Tensor | None
    low: Low | None


def takes(layer: nn.Module) -> bool:
    """Whether the layer is a linear one, or one with a single adapter that is added to it and has no dropout now."""
    own: Any = layer
    if not _is_adapted(layer):
        return type(layer) is nn.Linear
    name, *others = own.active_adapters
    if others or own.merged or own.disable_adapters or own.lora_variant or name not in own.lora_A:
        return False
    dropout = own.lora_dropout[name]
    bare = own.lora_A[name].bias is None and own.lora_B[name].bias is None
    return bare and type(own.get_base_layer()) is nn.Linear and (type(dropout) is nn.Identity or not dropout.training)


def parts(layer: nn.Module) -> Layer:
    """Of a layer that `takes` says yes to."""
    own: Any = layer
    if not _is_adapted(layer):
        return Layer(own.weight, own.bias, None)
    base, (name,) = own.get_base_layer(), own.active_adapters
    return Layer(base.weight, base.bias, Low(own.lora_A[name].weight, own.lora_B[name].weight * own.scaling[name]))


def _is_adapted(layer: nn.Module) -> bool:
    return f"{type(layer).__module__}.{type(layer).__qualname__}" == ADAPTED


def lowered(values: Tensor, downs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """``values [N, in]`` times every A, ``[N, rank]`` each, as one product; none of none."""
    if not downs:
        return ()
    found = product(values, stacked(downs, values.dtype))
    return torch.split(found, [len(down) for down in downs], dim=1)


def raise_onto(found: Tensor, low: Tensor, up: Tensor) -> None:
    """Add ``low [N, rank]`` times B to ``found [N, out]``, in place."""
    found.add_(product(low, up.to(low.dtype)))


def low_gradients(
    slopes: Sequence[Tensor], values: Tensor, lows: Sequence[Tensor], downs: Sequence[Tensor], ups: Sequence[Tensor]
) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Those of ``values [N, in]``, of every A and of every B, from those ``[N, out]`` of every layer's output."""
    of_lows = [product(slope, up.to(slope.dtype).T) for slope, up in zip(slopes, ups, strict=True)]
    joined = torch.cat(of_lows, dim=1)
    of_downs = torch.split(weight_gradient(joined, values).to(downs[0].dtype), [len(down) for down in downs])
    of_ups = [weight_gradient(slope, low).to(ups[0].dtype) for slope, low in zip(slopes, lows, strict=True)]
    return product(joined, stacked(downs, joined.dtype).T), list(of_downs), of_ups


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
