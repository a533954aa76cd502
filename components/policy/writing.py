"""A policy's checkpoint folder, written while its weights are read one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from components.policy.naming import Named
from components.policy.policy import Policy, quiet
from components.policy.safetensors_header import header
from components.policy.stored import SUFFIX

FILE = f"model{SUFFIX}"


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
        file.write(header(shapes, {}))
        for name, expected in shapes.items():
            tensor = weights[name].detach().to("cpu").contiguous()
            if (tensor.shape, tensor.dtype) != (expected.shape, expected.dtype):
                raise ValueError(f"{name} is {tensor.dtype} {list(tensor.shape)}, not as announced")
            file.write(tensor.view(-1).view(torch.uint8).numpy().data)
