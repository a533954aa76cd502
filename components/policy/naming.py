"""Weights under the names that a checkpoint has for them, where the model has others: fused experts."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion

from components.errors import InputError
from components.policy.lazily import Lazily


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
        self._latest: tuple[str, dict[str, Tensor]] = ("", {})

    def __getitem__(self, name: str) -> Tensor:
        source, latest = self._source[name], self._latest
        if source != latest[0]:
            latest = source, revert_weight_conversion(self._model, {source: self._read(source)})
            self._latest = latest if len(latest[1]) > 1 else ("", {})
        return latest[1][name]

    def _read(self, source: str) -> Tensor:
        return self._buffers[source].detach() if source in self._buffers else self._weights[source]

    @property
    def names(self) -> Collection[str]:
        return self._source.keys()
