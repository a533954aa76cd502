"""Activation checkpointing: memory for time (1604.06174)."""

from __future__ import annotations

from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from components.errors import InputError


def checkpoint_activations(model: PreTrainedModel) -> None:
    """Keep only the input of each layer of ``model``; the backward pass computes the rest again, to the same bits.

    The model stays in evaluation mode, so dropout stays off: transformers looks at the mode of the layer alone, and
    only that is switched.

    Raises:
        InputError: the architecture has no such layers.
    """
    layers = checkpointed_layers(model)
    if not model.supports_gradient_checkpointing or not layers:
        raise InputError(
            f"{type(model).__name__} does not support activation checkpointing",
            where="learner.activation_checkpointing",
            how="switch it off, and lower learner.micro_batch_tokens where memory is short",
        )
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    for layer in layers:
        layer.training = True


def checkpointed_layers(model: PreTrainedModel) -> list[GradientCheckpointingLayer]:
    """The layers that a model is a stack of."""
    return [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
