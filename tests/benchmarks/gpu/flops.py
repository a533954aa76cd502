"""The arithmetic of an update, and what GPUs can do at best. Without torch.

Model FLOPs of a step (what has to be computed; what checkpointing or pieces of logits compute again does not count):

- 6 for every parameter of the layers and every token: 2 in the forward pass, 4 in the backward pass
- 6 x vocabulary x hidden for every token of a response, whose logits are needed; prompts need none
- 6 x layers x width x length for every token of a row, the products of queries, keys and values with what lies before
  them: half of what attention without a mask would take (12 x layers x width x length)

MFU is that, divided by the seconds and by the peak of the device in dense bf16 (2204.02311, appendix B, counts
attention without a mask and logits of all tokens, which gives more).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PEAKS = {
    "B200": 2250e12,
    "GH200": 989e12,
    "H200 NVL": 835e12,
    "H200": 989e12,
    "H100 NVL": 835e12,
    "H100 PCIe": 756e12,
    "H100": 989e12,
    "H800": 989e12,
    "H20": 148e12,
    "A100": 312e12,
    "A800": 312e12,
    "L40S": 362e12,
    "L40": 181e12,
    "L4": 121e12,
    "A10G": 70e12,
    "A10": 125e12,
    "RTX 4090": 165e12,
    "RTX 3090": 71e12,
}
"""Dense FLOP/s in bf16 with sums in fp32, from the makers' data sheets, by words of the device's name. The first that
fits counts, so the longer name stands first."""


@dataclass(frozen=True)
class Shape:
    """A model, and how long and many its rows are."""

    name: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int = 2
    vocabulary: int = 151_936
    rows: int = 64
    group: int = 8
    prompt: int = 256
    response: int = 768
    pass_rows: int = 8
    """Rows of one forward and backward pass."""

    @property
    def length(self) -> int:
        return self.prompt + self.response

    @property
    def tokens(self) -> int:
        return self.rows * self.length


SHAPES = (Shape("0.5B", 896, 4864, 24, 14),)
"""Qwen2.5 0.5B. ``Shape("1.5B", 1536, 8960, 28, 12)`` is the next size, which takes twice as long."""
TOY = Shape("toy", 64, 128, 2, 4, vocabulary=512, rows=4, group=2, prompt=8, response=16, pass_rows=2)


def step_flops(shape: Shape, parameters: int, frozen: bool = False) -> float:
    """Model FLOPs of one update, of a model with as many parameters, whose output layer is its embedding. Weights that
    are ``frozen``, under an adapter, have no gradient of their own: 4 for each of them and every token."""
    head, each = shape.vocabulary * shape.hidden, 4 if frozen else 6
    layers = each * (parameters - head) * shape.tokens
    logits = each * head * shape.rows * shape.response
    attention = 6 * shape.layers * shape.hidden * shape.length * shape.tokens
    return float(layers + logits + attention)


def peak_flops(device: str) -> float | None:
    """What a device of this name can do at best; None where that is not known here."""
    words = (rf"\b{re.escape(name)}\b" for name in PEAKS)
    return next((flops for word, flops in zip(words, PEAKS.values(), strict=True) if re.search(word, device)), None)
