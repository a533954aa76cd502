"""Linear layers of which the weights lie as oneDNN reads them.

A product of few rows takes little longer than reading its weights, and oneDNN puts plain ones into its own order before
every product. Packed once, when they are loaded, they are read as they lie: 1.3 to 2 times as fast at 8 to 32 rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from components.policy.lean.products import SIZES, onednn, product

ROWS = 32
"""Rows that weights are packed for. The layout serves every other number as well: measured from 1 to 256."""


class Projection:
    """Linear layers of one input as one product, their outputs side by side.

    Until `pack` the weights of the layers are views of one tensor; from then on the packed weights are the only ones.
    """

    def __init__(self, *linears: nn.Linear) -> None:
        self.weights = [linear.weight for linear in linears]
        self.shapes = [weight.shape for weight in self.weights]
        self._weight = _joined(self.weights)
        biases = [linear.bias for linear in linears if linear.bias is not None]
        self._bias = _joined(biases) if biases else None
        self._packed = False

    @property
    def size(self) -> int:
        """How many weights there are."""
        return sum(shape.numel() for shape in self.shapes)

    def pack(self, keep: nn.Parameter) -> None:
        """Pack the weights, and empty the parameters that they came from unless these are ``keep``."""
        self._weight, self._packed = _packed(self._weight), True
        for parameter in self.weights:
            if parameter is not keep:
                parameter.data = parameter.data.new_empty(0)

    def load(self, weights: Sequence[Tensor]) -> None:
        """Pack other weights, one ``[out, in]`` for each layer, of the same `shapes`."""
        self._weight = _packed(torch.cat([weight.detach() for weight in weights]).to(self._weight.dtype))

    def __call__(self, values: Tensor) -> Tensor:
        """``[N, in]`` -> ``[N, out]``."""
        if not self._packed:
            return product(values, self._weight, self._bias)
        found: Tensor = torch.ops.mkldnn._linear_pointwise(filled(values), self._weight, self._bias, "none", [], "")
        return found[: len(values)]


def packable(dtype: torch.dtype) -> bool:
    """Whether oneDNN computes in this precision here."""
    if not onednn() or not hasattr(torch.ops.mkldnn, "_reorder_linear_weight"):
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()))


def filled(values: Tensor) -> Tensor:
    """``values`` with rows of zeros behind, up to a power of two or a multiple of ``SIZES``: oneDNN makes a program for
    every number of rows that it has not met, which takes longer than a small product does."""
    rows = len(values)
    missing = -rows % SIZES if rows > SIZES else (1 << (rows - 1).bit_length()) - rows
    return functional.pad(values, (0, 0, 0, missing)) if missing else values


def _packed(weight: Tensor) -> Tensor:
    found: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS)
    return found


def _joined(parameters: Sequence[Tensor]) -> Tensor:
    """One tensor of which ``parameters`` become views; of a single one its own."""
    if len(parameters) == 1:
        return parameters[0].detach()
    whole = torch.cat([parameter.detach() for parameter in parameters])
    for parameter, part in zip(parameters, torch.split(whole, [len(p) for p in parameters]), strict=True):
        parameter.data = part
    return whole
