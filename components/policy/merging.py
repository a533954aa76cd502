"""An adapter's matrices and the frozen ones that they are added to, by name: to merge them one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from components.policy.lazily import Lazily
from components.policy.lora import NAME, adapted_layers
from components.policy.policy import Policy

BASE = ".base_layer."
"""What the name of a frozen matrix has inside of a model with an adapter."""


class Adapted(NamedTuple):
    """The names of one adapted matrix W and of its adapter, and how they are merged: W + scaling * B @ A."""

    weight: str
    down: str
    up: str
    scaling: float
    transposed: bool
    """Whether W is ``[in, out]``, as GPT-2 has it."""

    def merged(self, weight: Tensor, down: Tensor, up: Tensor) -> Tensor:
        """The merged matrix, in the precision of ``weight``; ``down`` is A ``[rank, in]``, ``up`` is B ``[out, rank]``,
        both fp32."""
        delta = up.to(weight.device) @ down.to(weight.device)
        return weight + ((delta.T if self.transposed else delta) * self.scaling).to(weight.dtype)


def names(policy: Policy) -> dict[str, str]:
    """By the name of every weight of the policy, as a checkpoint has it, its name in the model; tied ones once."""
    own = {id(parameter) for parameter in policy.trainable().values()} if adapted_layers(policy.model) else set()
    found = policy.model.named_parameters()
    return {name.replace(BASE, "."): name for name, parameter in found if id(parameter) not in own}


def adapted(policy: Policy) -> dict[str, Adapted]:
    """By the name of every adapted matrix, as a checkpoint has it, what it is made of; empty without an adapter."""
    return {
        f"{name}.weight": Adapted(
            f"{name}{BASE}weight",
            f"{name}.lora_A.{NAME}.weight",
            f"{name}.lora_B.{NAME}.weight",
            float(layer.scaling[NAME]),
            bool(layer.fan_in_fan_out),
        )
        for name, layer in adapted_layers(policy.model).items()
    }


class Initial(Lazily):
    """What ranks begin with, by the names in the model of ``policy``: the ``weights`` of a checkpoint, with a new
    adapter; or, where there are none, the policy's own values."""

    def __init__(self, policy: Policy, weights: Mapping[str, Tensor] | None) -> None:
        self._own: Mapping[str, Tensor] = {}
        if weights is None:
            self._own = policy.model.state_dict()
        elif adapted_layers(policy.model):
            self._own = policy.trainable()
        self._weights = weights or {}
        self.names = [*self._own, *self._weights]

    def __getitem__(self, name: str) -> Tensor:
        return self._own[name].detach() if name in self._own else self._weights[name.replace(BASE, ".")]

    def __contains__(self, name: object) -> bool:
        return name in self._own or str(name).replace(BASE, ".") in self._weights


@contextmanager
def without_adapter(model: PreTrainedModel) -> Iterator[None]:
    """Inside, the model computes as its base does.

    `peft` has a switch of its own, which also changes what has a gradient; whatever has spread the parameters over
    ranks must not see that.
    """
    layers = list(adapted_layers(model).values())
    for layer in layers:
        layer._disable_adapters = True
    try:
        with torch.no_grad():
            yield
    finally:
        for layer in layers:
            layer._disable_adapters = False
