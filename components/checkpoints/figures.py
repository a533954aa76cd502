"""Figures of a checkpoint's configuration that no model could have. What reads them later divides by them, or asks for
memory in proportion to them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from components.checkpoints.tensors import Entry
from components.errors import InputError

POSITIVE = frozenset(
    {
        *("num_attention_heads", "num_key_value_heads", "num_hidden_layers", "hidden_size", "head_dim", "vocab_size"),
        *("max_position_embeddings", "intermediate_size", "rope_theta", "rms_norm_eps", "layer_norm_eps"),
        *("layer_norm_epsilon", "norm_epsilon", "norm_eps", "n_head", "n_layer", "n_embd", "n_positions"),
    }
)
"""Keys of config.json whose number is above zero, where there is one."""
LAYERS = ("num_hidden_layers", "n_layer")
WIDTHS = ("hidden_size", "n_embd", "vocab_size")
QUANTISED = ("quantization_config", "compression_config")
HOW = "correct config.json, or save the checkpoint again with the configuration of its model"


def check_figures(config: Mapping[str, Any], tensors: Iterable[Entry], file: Path) -> None:
    """Refuse a configuration with figures that its model cannot have.

    Args:
        config: content of ``file``.
        tensors: all tensors of the checkpoint.

    Raises:
        InputError: a number that is not finite, or zero or below where it must be above; more layers than there are
            tensors, or wider ones than the widest; or a quantised checkpoint, for quantised weights cannot be trained.
    """
    for key in QUANTISED:
        if any(name == key and value is not None for name, value in entries(config)):
            how = f"save the checkpoint dequantised, in bfloat16 or float32 and without {key}"
            raise InputError(f"{key}: quantised weights cannot be trained", where=file, how=how)
    for key, value in entries(config):
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if not math.isfinite(value):
            raise InputError(f"{key} is {value}", where=file, how=HOW)
        if key in POSITIVE and value <= 0:
            raise InputError(f"{key} is {value:g}, and must be above 0", where=file, how=HOW)
    found = list(tensors)
    widest = max((size for entry in found for size in entry.shape), default=0)
    for keys, most, what in ((LAYERS, len(found), "tensors"), (WIDTHS, widest, "rows in the largest tensor")):
        for key in keys:
            if isinstance(value := config.get(key), int) and value > most:
                raise InputError(f"{key} is {value:,}, and there are {most:,} {what}", where=file, how=HOW)


def entries(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every key with its value, at any depth; of a list also each value by the key of the list."""
    left = [*tree.items()]
    while left:
        key, value = left.pop()
        yield key, value
        if isinstance(value, dict):
            left.extend(value.items())
        elif isinstance(value, list):
            left.extend((key, one) for one in value)
