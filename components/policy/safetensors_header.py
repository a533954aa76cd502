"""The header of a safetensors file, for files that are written tensor by tensor: the library needs all of them at once.

Eight bytes with the length of a JSON text, then the text: precision, shape and place of every tensor
(github.com/huggingface/safetensors, "Format").
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

ALIGNED = 8
"""Bytes that the length of the text is a multiple of."""
DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""What the format calls the precisions."""


def header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """The bytes before the first tensor; the tensors follow in the order of ``tensors``, contiguous and without gaps.
    Shapes and precisions are read, values are not."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt", **metadata}}
    start = 0
    for name, tensor in tensors.items():
        end = start + tensor.numel() * tensor.element_size()
        entries[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNED)
    return struct.pack("<Q", len(text)) + text
