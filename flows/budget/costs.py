"""What a token costs: processor time of sampling, scoring and learning, by the shape of the model.

Products with matrices take time by the number of parameters, what is done to the vectors between them by layers x
width; of a small model the second is most. `RATES` has both, for one thread of a CPU; to measure them again:
`python -m tests.benchmarks.token_costs measure <checkpoint>`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from components.config import Settings
from components.config.policy import CheckpointModel, TinyModel
from components.processes.memory import tensor_sizes


class Rate(NamedTuple):
    """``products``: multiplications and additions a second. ``vector``: seconds for each number of a layer's width."""

    products: float
    vector: float


RATES = {
    "sampling": Rate(6.0e10, 2.1e-7),
    "scoring": Rate(6.5e10, 1.5e-8),
    "learning": Rate(8.5e10, 3.7e-8),
}
"""Measured in November 2026, float32, on a model of 0.64 million parameters and on one of 135 million."""
IMPORTS, LOADING = 3.0, 3e-8
"""Seconds until torch and transformers are there, and seconds a parameter to read a model or to write it."""
PASSES = {"sampling": 1, "scoring": 1, "learning": 3}
"""Products of a token, in forward passes: a backward pass is two."""


@dataclass(frozen=True, slots=True)
class Shape:
    """``matrices``: parameters that a token is multiplied with; looking an embedding up costs nothing, its use as the
    output layer does. ``vectors``: layers x width."""

    matrices: float
    vectors: float


def seconds(kind: str, shape: Shape, tokens: float) -> float:
    """Processor time of ``tokens`` tokens, where ``kind`` is one of `RATES`."""
    rate = RATES[kind]
    return tokens * (PASSES[kind] * 2 * shape.matrices / rate.products + shape.vectors * rate.vector)


def loading(shape: Shape) -> float:
    """Processor time until a stage has its model."""
    return IMPORTS + LOADING * shape.matrices


def shape_of(settings: Settings) -> Shape:
    """Of the policy. For a folder by the tables of its safetensors; of one that is not there nothing is known."""
    model = settings.policy.model
    return tables(Path(model.path)) if isinstance(model, CheckpointModel) else _of_tiny(model)


def _of_tiny(model: TinyModel) -> Shape:
    attention = 2 * model.hidden_size * model.head_dim * (model.heads + model.kv_heads)
    mlp = 3 * model.hidden_size * model.intermediate_size * max(1, model.experts_per_token if model.experts else 1)
    matrices = model.layers * (attention + mlp) + model.hidden_size * model.vocab_size
    return Shape(matrices, model.layers * model.hidden_size)


def tables(folder: Path) -> Shape:
    """Of a checkpoint folder, by the tables at the heads of its safetensors; nothing is loaded."""
    sizes = tensor_sizes(folder)
    lookup = sum(size for name, size in sizes.items() if "embed_tokens" in name or "wte" in name)
    head = sum(size for name, size in sizes.items() if "lm_head" in name)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        vectors = float(config["num_hidden_layers"] * config["hidden_size"])
    except (OSError, ValueError, KeyError, TypeError):
        vectors = 0.0  # it is refused when it is loaded, with a better word for it
    return Shape(max(1.0, sum(sizes.values()) - (lookup if head else 0)), vectors)
