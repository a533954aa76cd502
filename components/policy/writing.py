"""A policy's checkpoint folder, written while its weights are read one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion

from components.errors import InputError
from components.policy.lazily import Lazily
from components.policy.policy import Policy, quiet
from components.policy.stored import SUFFIX, header

FILE = f"model{SUFFIX}"


class Named(Lazily):
    """``weights`` of a model, by the names that others read from its checkpoint. Each weight of the model is read once
    where those that are made of it are read in order. Buffers that a checkpoint has are the model's own.

    Raises:
        InputError: a tensor of the checkpoint is made of several of the model's.
    """

    def __init__(self, model: PreTrainedModel, weights: Mapping[str, Tensor]) -> None:
        self._model, self._weights = model, weights
        saved = model.state_dict().keys()
        self._buffers = {name: buffer for name, buffer in model.named_buffers() if name in saved}
        both = {**dict(model.named_parameters()), **self._buffers}
        own = {name: torch.empty_like(tensor, device="meta") for name, tensor in both.items()}
        made = {name: revert_weight_conversion(model, {name: weight}) for name, weight in own.items()}
        self.shapes: dict[str, Tensor] = {new: tensor for some in made.values() for new, tensor in some.items()}
        """Tensors of the same names, shapes and precisions, on the meta device."""
        whole = revert_weight_conversion(model, own)
        if whole.keys() != self.shapes.keys():
            odd = sorted(whole.keys() ^ self.shapes.keys())
            raise InputError(
                f"tensors of this model's checkpoint are made of several of its weights: {', '.join(odd[:3])}",
                where="policy.model",
                how="use learner.kind torch and rollout.engine.kind torch, which load and save such a model whole",
            )
        self._source = {new: name for name, some in made.items() for new in some}
        self.names = self._source.keys()
        self._latest: tuple[str, dict[str, Tensor]] = ("", {})

    def __getitem__(self, name: str) -> Tensor:
        source, latest = self._source[name], self._latest
        if source != latest[0]:
            latest = source, revert_weight_conversion(self._model, {source: self._read(source)})
            self._latest = latest if len(latest[1]) > 1 else ("", {})
        return latest[1][name]

    def _read(self, source: str) -> Tensor:
        return self._buffers[source].detach() if source in self._buffers else self._weights[source]


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
