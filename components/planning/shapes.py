"""What a `config.json` says about a model: parameters by kind, and the sizes that activations and caches follow.

The model is built on the meta device by the code that builds the real one, and so is its adapter: counts are exact for
every architecture, and take no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel
from transformers.initialization import no_init_weights

from components.config.policy import LoraSettings, TinyModel
from components.errors import InputError
from components.learner.activations import checkpointed_layers
from components.policy import Policy
from components.policy.loading import LOAD_ERRORS
from components.policy.lora import adapted, base_matrices
from components.policy.policy import quiet
from components.policy.quantised import linear_layers
from components.policy.tiny import model_config

FILE = "config.json"
KINDS = ("embedding", "attention", "experts", "MLP", "norms", "head", "other")


@dataclass(frozen=True)
class Shape:
    """A model, and what of it is trained. All counts are of numbers, not of bytes."""

    architecture: str
    kinds: Mapping[str, int]
    """Parameters by kind; a tied output layer is counted as the embedding."""
    trainable: int
    """What an optimizer changes: all of the model, or the adapter."""
    adapted: int
    """Parameters of the matrices that have an adapter; 0 without one."""
    tied: bool
    layers: int
    layer: int
    """Parameters of the largest layer."""
    outside: int
    """Parameters that belong to no layer: embedding, output layer, last norm."""
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    """Columns of the MLP that one token takes; with experts, those of all that it is sent to."""
    vocabulary: int
    head_norms: bool = False
    """Whether queries and keys are normed head by head, as in Qwen3."""
    linear: int = 0
    """Parameters that an int8 engine rounds: weights of linear layers but the output layer."""

    @property
    def parameters(self) -> int:
        """Of the model, without an adapter; tied ones count once."""
        return sum(self.kinds.values())

    @property
    def lora(self) -> bool:
        return self.adapted > 0

    @property
    def table(self) -> int:
        """Parameters of the output layer, tied or not."""
        return self.vocabulary * self.hidden

    @property
    def backbone(self) -> int:
        """Parameters without an output layer of their own."""
        return self.parameters - (0 if self.tied else self.table)


def shape_of(config: PretrainedConfig, lora: LoraSettings | None = None) -> Shape:
    """The shape of a model with this configuration.

    Raises:
        InputError: transformers knows no causal language model of this kind, or the adapter does not fit it.
    """
    model, text = on_meta(config), config.get_text_config()
    kinds = by_kind(model)
    layers = [distinct(layer.parameters()) for layer in checkpointed_layers(model)]
    total, heads = sum(kinds.values()), int(text.num_attention_heads)
    linear = distinct(layer.weight for layer in linear_layers(model).values())
    trainable, base = total, 0
    if lora is not None:
        with torch.device("meta"):  # peft makes its matrices where tensors are made
            policy = adapted(Policy(model, cast(Any, None)), lora, seed=0)
        trainable, base = distinct(policy.trainable().values()), distinct(base_matrices(policy.model))
    return Shape(
        architecture=type(model).__name__,
        kinds=kinds,
        trainable=trainable,
        adapted=base,
        tied=is_tied(model),
        layers=len(layers) or int(text.num_hidden_layers),
        layer=max(layers, default=0),
        outside=total - sum(layers),
        hidden=int(text.hidden_size),
        heads=heads,
        kv_heads=int(getattr(text, "num_key_value_heads", None) or heads),
        head_dim=int(getattr(text, "head_dim", None) or text.hidden_size // heads),
        intermediate=columns_of(text),
        vocabulary=int(text.vocab_size),
        head_norms=any(name.endswith("q_norm.weight") for name, _ in model.named_parameters()),
        linear=linear,
    )


def config_at(path: Path) -> PretrainedConfig:
    """The configuration in a folder, or in a file.

    Raises:
        InputError: there is none, or transformers does not know it.
    """
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        how = "name a checkpoint folder, or the config.json of a model; no weights are needed"
        raise InputError("there is no configuration of a model", where=file, how=how)
    try:
        found: PretrainedConfig = AutoConfig.from_pretrained(file, local_files_only=True, trust_remote_code=False)
    except LOAD_ERRORS as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        how = "name the config.json of a causal language model that transformers knows"
        raise InputError(f"the configuration cannot be read: {first}", where=file, how=how) from error
    return found


def tiny_config(settings: TinyModel) -> PretrainedConfig:
    """The configuration of a tiny model whose vocabulary is as large as the settings allow."""
    return model_config(settings, settings.vocab_size, eos_id=None, pad_id=None)


def on_meta(config: PretrainedConfig) -> PreTrainedModel:
    """The model without weights.

    Raises:
        InputError: transformers makes no causal language model of it.
    """
    try:
        with quiet(), no_init_weights(), torch.device("meta"):
            model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
            model.tie_weights()
    except LOAD_ERRORS as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        how = "name the config.json of a causal language model"
        raise InputError(f"transformers cannot build this model: {first}", where=FILE, how=how) from error
    return model


def by_kind(model: PreTrainedModel) -> dict[str, int]:
    """Numbers of parameters by kind, those that there are; a tensor that two modules share is counted once."""
    table, head = model.get_input_embeddings(), model.get_output_embeddings()
    found = dict.fromkeys(KINDS, 0)
    for name, parameter in model.named_parameters():
        if parameter is table.weight:
            kind = "embedding"
        elif head is not None and parameter is head.weight:
            kind = "head"
        else:
            kind = next((kind for word, kind in WORDS if word in name.lower()), "other")
        found[kind] += parameter.numel()
    return {kind: count for kind, count in found.items() if count}


WORDS = (
    *(("norm", "norms"), ("ln_", "norms"), ("attn", "attention"), ("attention", "attention")),
    *(("expert", "experts"), ("moe", "experts"), ("mlp", "MLP"), ("feed_forward", "MLP")),
)
"""What a parameter's name says of its kind; the first word that it has."""


def is_tied(model: PreTrainedModel) -> bool:
    """Whether the output layer is the embedding."""
    head = model.get_output_embeddings()
    return head is not None and head.weight is model.get_input_embeddings().weight


def columns_of(text: Any) -> int:
    """Columns of the MLP that one token takes."""
    experts = getattr(text, "num_experts_per_tok", None)
    if experts and getattr(text, "moe_intermediate_size", None):
        shared = int(getattr(text, "shared_expert_intermediate_size", None) or 0)
        return int(experts * text.moe_intermediate_size) + shared
    own = getattr(text, "intermediate_size", None) or getattr(text, "n_inner", None)
    return int(own or 4 * text.hidden_size) * int(experts or 1)


def distinct(tensors: Iterable[Tensor]) -> int:
    """Numbers in these tensors, each of which is counted once."""
    return sum(tensor.numel() for tensor in {id(tensor): tensor for tensor in tensors}.values())
