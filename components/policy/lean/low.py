"""Low-rank adapters (2106.09685) inside of linear layers: ``(alpha / rank) B @ A`` on top of a weight.

The two factors are multiplied by values one after the other, as `peft` does it; their product is never made. A frozen
weight gets no gradient, so that an update with an adapter is less work than one of all weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from components.policy.lean.products import product, stacked, weight_gradient

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
