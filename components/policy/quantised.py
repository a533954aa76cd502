"""The layers that a quantised copy of the policy rounds."""

from __future__ import annotations

from torch import nn
from transformers import PreTrainedModel

from components.errors import InputError


def quantised_layers(model: PreTrainedModel) -> dict[str, nn.Linear]:
    """Linear layers by name, without the output head: an error in it goes straight into the log-probabilities.

    Raises:
        InputError: there is none.
    """
    linear = linear_layers(model)
    if not linear:
        raise InputError(
            f"{type(model).__name__} has no linear layer that could be quantised",
            where="rollout.engine.precision",
            how="use precision policy or bfloat16",
        )
    return linear


def linear_layers(model: PreTrainedModel) -> dict[str, nn.Linear]:
    """Linear layers by name, without the output head."""
    head = model.get_output_embeddings()
    return {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear) and m is not head}
