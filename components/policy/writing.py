"""A policy's checkpoint folder, written while its weights are read one at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from components.policy.naming import Named
from components.policy.policy import Policy, quiet
from components.policy.stored import SUFFIX

FILE = f"model{SUFFIX}"
ALIGNED = 8
"""Bytes that the header of a safetensors file is a multiple of."""
DTYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}
"""What the format calls the precisions of weights."""


def write_policy(policy: Policy, weights: Mapping[str, Tensor], directory: Path) -> None:
    """Write what `Policy.save` writes, with other values.

    Args:
        policy: configuration, tokenizer, names and shapes; its own values are not used.
        weights: by the same names.
    """
    model: Any = policy.model
    model.config.dtype = str(model.dtype).removeprefix("torch.")
    model.config.architectures = [type(model).__name__]
    with quiet():
        model.config.save_pretrained(directory)
        if model.can_generate():
            model.generation_config.save_pretrained(directory)
        policy.save_tokenizer(directory)
    named = Named(model, weights)
    write_safetensors(directory / FILE, named, named.shapes)


def write_safetensors(path: Path, weights: Mapping[str, Tensor], shapes: Mapping[str, Tensor]) -> None:
    """Write a safetensors file tensor by tensor; the library needs all of them at once.

    Args:
        shapes: by the same names, tensors of the same shape and precision, whose values are not read.

    Raises:
        ValueError: a tensor is not what ``shapes`` says.
    """
    with path.open("wb") as file:
        _write_header(file, shapes)
        for name, expected in shapes.items():
            tensor = weights[name].detach().to("cpu").contiguous()
            if (tensor.shape, tensor.dtype) != (expected.shape, expected.dtype):
                raise ValueError(f"{name} is {tensor.dtype} {list(tensor.shape)}, not as announced")
            file.write(tensor.view(-1).view(torch.uint8).numpy().data)


def _write_header(file: BinaryIO, shapes: Mapping[str, Tensor]) -> None:
    """Sizes first, so that a reader can map every tensor (github.com/huggingface/safetensors, "Format")."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    start = 0
    for name, tensor in shapes.items():
        end = start + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNED)
    file.write(len(text).to_bytes(8, "little") + text)
