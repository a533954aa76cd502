"""Low-rank adapters (2106.09685): the base is frozen, and what is learned is B @ A beside some of its matrices.

The adapter is `peft`'s. Base weights are held once: the adapted model and its base share them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig
from peft.tuners.lora import LoraLayer
from peft.utils.save_and_load import get_peft_model_state_dict
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import Parameter

from components.config.policy import LoraSettings
from components.errors import InputError
from components.files import write_json
from components.policy.policy import Policy, quiet

NAME = "default"
"""What the one adapter of a model is called inside of it."""
FOLDER = "adapter"
"""Of a checkpoint, beside the merged weights."""


@dataclass(frozen=True)
class AdaptedPolicy(Policy):
    """A policy whose model has an adapter. Whoever reads its weights reads them merged, under the names of the base."""

    base: Policy = field(kw_only=True)
    config: LoraConfig = field(kw_only=True)

    def trainable(self) -> dict[str, Parameter]:
        return {name: p for name, p in self.model.named_parameters() if _is_adapter(name)}

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
        layers: dict[str, Any] = {
            n: module for n, module in self.model.named_modules() if isinstance(module, LoraLayer)
        }
        found = {name: parameter.detach() for name, parameter in self.base.model.named_parameters()}
        for name, layer in layers.items():
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

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Never: merged weights cannot be taken apart again."""
        raise TypeError("merged weights cannot be loaded into a policy with an adapter")

    def save(self, directory: Path) -> None:
        """The merged checkpoint, and the adapter in a folder of it, as `peft` writes and reads one."""
        self.frozen_copy().save(directory)
        adapter = directory / FOLDER
        adapter.mkdir()
        config = self.config.to_dict()  # type: ignore[no-untyped-call]
        config["target_modules"] = sorted(config["target_modules"])  # a set, whose order differs from run to run
        config["base_model_name_or_path"] = None  # a path of this machine
        write_json(adapter / "adapter_config.json", config)
        state = get_peft_model_state_dict(self.model, adapter_name=NAME)
        prefixed = {f"base_model.model.{name}": tensor.detach().contiguous() for name, tensor in state.items()}
        save_file(prefixed, adapter / "adapter_model.safetensors", metadata={"format": "pt"})


def adapted(policy: Policy, settings: LoraSettings | None, seed: int) -> Policy:
    """``policy`` with a new adapter, which changes nothing yet (B is 0); the same policy where there are no settings.

    The model of ``policy`` itself stays as it is, without gradients.

    Raises:
        InputError: the model has none of the modules that the settings name.
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
            what = f"no adapter can be put on this model: {str(error).splitlines()[0]}"
            raise InputError(
                what, where="policy.lora.targets", how="name modules such as q_proj, or all-linear"
            ) from None
    return AdaptedPolicy(model, policy.tokenizer, policy.chat, policy.instruction, base=policy, config=config)


def _is_adapter(name: str) -> bool:
    return f".{NAME}." in name and ".lora_" in name
