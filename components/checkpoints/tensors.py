"""The header of a safetensors file of a checkpoint, read before any weight is.

The library that loads weights takes the last of two tensors with one name, and transformers turns whole numbers and
truth values into weights. Neither says so, thus both are refused here.
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from components.errors import InputError
from components.files import os_errors

WEIGHTS = frozenset({"F64", "F32", "BF16", "F16"})
"""Precisions that a weight may have in a file."""
BUFFERS = re.compile(
    r"(.*\.)?(position_ids|token_type_ids|num_batches_tracked|masked_bias|(attn|attention)\.bias|rotary_emb\.\w+)"
)
"""Tensors that architectures of transformers store though they are no weights, such as the mask of GPT-2."""
HOW = "save the checkpoint again"


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor, as the header describes it."""

    dtype: str
    shape: tuple[int, ...]


def read_entries(file: Path) -> dict[str, Entry]:
    """The tensors of a file by name. The library checks offsets and sizes against the file.

    Raises:
        InputError: it is no safetensors file, holds two tensors of one name, or a weight that is no floating-point
            number.
    """
    try:
        with safe_open(file, framework="numpy") as tensors:
            names = set(tensors.keys())
    except (SafetensorError, OSError) as error:
        raise InputError(f"not a safetensors file: {error}", where=file, how=HOW) from error
    found = {name: value for name, value in _header(file).items() if name in names}
    entries = {name: Entry(value["dtype"], tuple(value["shape"])) for name, value in found.items()}
    for name, entry in entries.items():
        if entry.dtype not in WEIGHTS and not BUFFERS.fullmatch(name):
            raise InputError(
                f"the tensor {name} is of type {entry.dtype}, and weights are of {', '.join(sorted(WEIGHTS))}",
                where=file,
                how="save the checkpoint in bfloat16 or float32; a quantised one has to be dequantised first",
            )
    return entries


def _header(file: Path) -> dict[str, Any]:
    """The JSON of the header, which the library has read before."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in value if names.count(name) > 1)
            raise InputError(f"the header has two entries named {twice}", where=file, how=HOW)
        return value

    with os_errors("read", file), file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header: dict[str, Any] = json.loads(stream.read(length), object_pairs_hook=once)
    return header
