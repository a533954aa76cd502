"""Low-rank adapters (2106.09685): the base is frozen, and what is learned is B @ A, which is added to some matrices.

The adapter is `peft`'s. Base weights are held once: the adapted model and its base share them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from peft import LoraConfig
from peft.tuners.lora import LoraLayer
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import Parameter
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from components.config.policy import LoraSettings
from components.errors import InputError
from components.files import os_errors, write_json
from components.policy.lazily import Lazily
from components.policy.policy import Apart, Policy, check_names, quiet

NAME = "default"
"""What the one adapter of a model is called inside of it."""
MATRICES = (nn.Linear, Conv1D)
FOLDER = "adapter"
"""Of a checkpoint: where the adapter is stored."""
ADAPTER = "adapter_model.safetensors"
"""Of that folder: A and B."""
BASE = ".base_layer."
"""What the name of a frozen matrix has inside of a model with an adapter."""


@dataclass(frozen=True)
class AdaptedPolicy(Policy):
    """A policy whose model has an adapter. Whoever reads its weights reads them merged, under the names of the base."""

    base: Policy = field(kw_only=True)
    config: LoraConfig = field(kw_only=True)

    @property
    def parameters(self) -> int:
        """Of the merged policy."""
        return self.base.parameters

    def trainable(self) -> dict[str, Parameter]:
        every = self.model.named_parameters()
        return {name: parameter for name, parameter in every if f".{NAME}." in name and ".lora_" in name}

    def reference(self) -> Policy:
        """The base, which no update changes: no copy is needed."""
        return self.base

    def frozen_copy(self) -> Policy:
        """The merged policy, without an adapter."""
        merged = self.base.frozen_copy()
        merged.load_weights(self.weights())
        return merged

    @torch.no_grad()
    def weights(self) -> dict[str, Tensor]:
        """W + alpha / rank * B @ A in the base's precision, and what has no adapter as it is."""
        found = {name: parameter.detach() for name, parameter in self.base.model.named_parameters()}
        for name, layer in adapted_layers(self.model).items():
            weight = found[f"{name}.weight"]
            found[f"{name}.weight"] = weight + layer.get_delta_weight(NAME).to(weight.dtype)
        return found

    def weights_with(self, learned: Mapping[str, Tensor]) -> dict[str, Tensor]:
        with self._holding(learned):
            return {name: weight.clone() for name, weight in self.weights().items()}

    @contextmanager
    def _holding(self, learned: Mapping[str, Tensor]) -> Iterator[None]:
        """The adapter has these values inside."""
        before = {name: parameter.detach().clone() for name, parameter in self.trainable().items()}
        self.load_trainable(learned)
        try:
            yield
        finally:
            self.load_trainable(before)

    def apart(self, learned: Mapping[str, Tensor] | None = None) -> Apart:
        own = {name: parameter.detach() for name, parameter in self.trainable().items()}
        targets = tuple(sorted({path.rpartition(".")[2] for path in adapted_layers(self.model)}))
        values = own if learned is None else learned
        return Apart(self.base.weights(), values, self.config.r, targets, self.write_adapter)

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Never: merged weights cannot be taken apart again."""
        raise TypeError("merged weights cannot be loaded into a policy with an adapter")

    def save(self, directory: Path) -> None:
        """The merged checkpoint, and the adapter in a folder of it, as `peft` writes and reads one."""
        self.frozen_copy().save(directory)
        self.write_adapter(self.trainable(), directory / FOLDER)

    def write_adapter(self, learned: Mapping[str, Tensor], folder: Path) -> None:
        """Write an adapter with these values of `trainable` into a new folder, as `peft` reads one."""
        check_names(self.trainable(), learned)
        with os_errors("write", folder):
            folder.mkdir()
        config = self.config.to_dict()  # type: ignore[no-untyped-call]
        config["target_modules"] = sorted(config["target_modules"])  # a set, whose order differs from run to run
        config["base_model_name_or_path"] = None  # a path of this machine
        write_json(folder / "adapter_config.json", config)
        stored = {f"base_model.model.{name.replace(f'.{NAME}.', '.')}": value for name, value in learned.items()}
        tensors = {name: value.detach().cpu().contiguous() for name, value in stored.items()}
        with os_errors("write", folder / ADAPTER):
            save_file(tensors, folder / ADAPTER, metadata={"format": "pt"})


def adapted(policy: Policy, settings: LoraSettings | None, seed: int) -> Policy:
    """``policy`` with a new adapter, which changes nothing yet (B is 0); the same policy where there are no settings.

    The model of ``policy`` itself stays as it is, without gradients.

    Raises:
        InputError: the model has not all of the modules that the settings name, or they are no matrices inside of it.
    """
    if settings is None:
        return policy
    base = policy.model.requires_grad_(False)
    model = copy.deepcopy(base, {id(parameter): parameter for parameter in base.parameters()})
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=settings.targets if isinstance(settings.targets, str) else list(settings.targets),
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        try:
            model.add_adapter(config, adapter_name=NAME)
        except ValueError as error:
            raise refused(str(error).splitlines()[0]) from None
    check_targets(model, settings.targets)
    model.eval()  # peft's layers begin in training mode, with dropout
    found = AdaptedPolicy(model, policy.tokenizer, policy.chat, policy.instruction, base=policy, config=config)
    for parameter in found.trainable().values():
        parameter.data = parameter.data.float()  # whatever the base has
    return found


def check_targets(model: PreTrainedModel, targets: str | Sequence[str]) -> None:
    """Refuse names that nothing has, and modules whose adapter would not be learned or merged.

    Raises:
        InputError: see there.
    """
    layers = adapted_layers(model)
    named = () if isinstance(targets, str) else targets
    if missing := [name for name in named if not any(f".{path}".endswith(f".{name}") for path in layers)]:
        raise refused(f"the model has no {', '.join(missing)}")
    head = model.get_output_embeddings()
    odd = [path for path, layer in layers.items() if layer is head or not isinstance(layer.get_base_layer(), MATRICES)]
    if odd:
        raise refused(f"{odd[0]} is no matrix inside of the model")


def refused(what: str) -> InputError:
    """No adapter can be put where the settings say."""
    how = "name modules such as q_proj, or all-linear"
    return InputError(f"no adapter can be put on this model: {what}", where="policy.lora.targets", how=how)


def base_matrices(model: PreTrainedModel) -> list[Tensor]:
    """The frozen matrices that an adapter is added to."""
    return [layer.get_base_layer().weight for layer in adapted_layers(model).values()]


def adapted_layers(model: PreTrainedModel) -> dict[str, Any]:
    """The modules that have an adapter, by name."""
    return {name: module for name, module in model.named_modules() if isinstance(module, LoraLayer)}


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


def names_in_model(policy: Policy) -> dict[str, str]:
    """By the name of every weight of the policy, as a checkpoint has it, its name in the model; tied ones once."""
    own = {id(parameter) for parameter in policy.trainable().values()} if adapted_layers(policy.model) else set()
    found = policy.model.named_parameters()
    return {name.replace(BASE, "."): name for name, parameter in found if id(parameter) not in own}


def adapted_matrices(policy: Policy) -> dict[str, Adapted]:
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
