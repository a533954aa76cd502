"""A policy without its weights: configuration, tokenizer and names, for a process that needs no more."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from accelerate import init_empty_weights
from torch import Tensor, nn
from torch.nn import Parameter
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.initialization import no_init_weights
from transformers.utils import GENERATION_CONFIG_NAME

from components.checkpoints.checks import check_checkpoint
from components.config.policy import PolicySettings
from components.device import own_device
from components.policy.loading import DTYPES, LOAD_ERRORS, check_finite, check_policy, load_policy, tokenizers_errors
from components.policy.policy import Policy, quiet
from components.policy.stored import Stored


def empty_model(config: PretrainedConfig, dtype: torch.dtype) -> PreTrainedModel:
    """A model whose parameters take no memory: they are on the meta device. Its buffers are real."""
    with quiet(), no_init_weights():
        with init_empty_weights(include_buffers=False):
            model: PreTrainedModel = AutoModelForCausalLM.from_config(copy.deepcopy(config), dtype=dtype)
        model.tie_weights()  # inside of the block above every tie would break
    return model.eval()


def outline(path: Path, settings: PolicySettings) -> tuple[Policy, Mapping[str, Tensor]]:
    """A checkpoint's policy whose parameters take no memory, and its weights by name, each read when it is used.

    A checkpoint whose tensors have other names than the model's (a mixture of experts, whose experts the model holds as
    one tensor) is loaded whole: its weights are then in memory for as long as the mapping is.

    Raises:
        InputError: as `load_policy`.
    """
    check_checkpoint(path)
    dtype, where = DTYPES[settings.dtype], {"local_files_only": True, "trust_remote_code": False}
    try:
        with quiet():
            config = AutoConfig.from_pretrained(path, **where)
            weights, model = Stored.folder(path, dtype), hollow(empty_model(config, dtype))
            with tokenizers_errors():
                tokenizer = AutoTokenizer.from_pretrained(path, **where)
            if (path / GENERATION_CONFIG_NAME).exists():
                model.generation_config = GenerationConfig.from_pretrained(path, local_files_only=True)
    except LOAD_ERRORS:  # it states what is wrong
        weights, model = None, None
    if model is None or weights is None or not fits(model, weights):
        whole = load_policy(path, settings)
        return whole, whole.model.state_dict()
    check_finite(weights, path)
    policy = Policy(model, tokenizer, settings.chat, settings.instruction)
    return check_policy(policy, path), weights


def fits(model: nn.Module, weights: Stored) -> bool:
    """Whether a model is what a checkpoint has: every parameter by its name and in its shape, nothing besides, and no
    buffers; weights that the model ties are one in the checkpoint too, or equal there."""
    own, every = dict(model.named_parameters()), model.state_dict(keep_vars=True)
    first = {id(parameter): name for name, parameter in own.items()}
    if any(name in every for name, _ in model.named_buffers()):
        return False
    if not all(name in weights and weights.shape(name) == parameter.shape for name, parameter in own.items()):
        return False
    tied = {name: first[id(every[name])] for name in every if name not in own}
    return all(name not in weights or torch.equal(weights[name], weights[one]) for name, one in tied.items())


def hollow(model: PreTrainedModel) -> PreTrainedModel:
    """Parameters on the CPU, all elements of which are one number: they have shape and device, and take no memory."""
    replaced(model, lambda _, old: torch.zeros((), dtype=old.dtype).expand(old.shape))
    return model


def is_hollow(model: nn.Module) -> bool:
    """Whether its parameters have no values of their own."""
    return any(parameter.numel() > 1 and not any(parameter.stride()) for parameter in model.parameters())


def filled(policy: Policy, weights: Mapping[str, Tensor]) -> Policy:
    """A policy of its own with the values of ``weights``, without gradients; ``policy`` is an `outline`."""
    shared, device = {id(parameter): parameter for parameter in policy.model.parameters()}, own_device()
    model = copy.deepcopy(policy.model, shared)  # a copy of what is hollow would take memory
    replaced(model, lambda name, old: weights[name].detach().to(device, old.dtype, copy=True))
    return Policy(model.requires_grad_(False).eval().to(device), policy.tokenizer, policy.chat, policy.instruction)


def replaced(
    module: nn.Module, value: Callable[[str, Parameter], Tensor], then: Callable[[Parameter], None] = lambda _: None
) -> None:
    """Put other parameters in the place of a module's own, one after the other; tied ones stay tied.

    Args:
        value: the tensor of the new one, by the old one and its name.
        then: called with each new one, before the next is made.
    """
    done: dict[int, tuple[Parameter, Parameter]] = {}  # the old ones too, so that no other one gets their id
    for owner, name, path in _places(module):
        old: Any = owner._parameters[name]
        if id(old) not in done:
            done[id(old)] = Parameter(value(path, old), requires_grad=old.requires_grad), old
            then(done[id(old)][0])
        owner._parameters[name] = done[id(old)][0]


def _places(module: nn.Module) -> Iterator[tuple[nn.Module, str, str]]:
    """Every module with a parameter of its own, the parameter's name in it and in the whole; tied ones several
    times."""
    for above, owner in module.named_modules():
        for name, parameter in owner._parameters.items():
            if parameter is not None:
                yield owner, name, f"{above}.{name}" if above else name
