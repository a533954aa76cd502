"""What a token costs: processor time of sampling, scoring and learning, by the shape of the model and this machine.

Products with matrices take time by the number of parameters, everything else (many small operations) by the number of
layers; of a small model that is most. `RATES` has both, for one thread of a CPU on which the probes took `PROBED`
seconds. To measure all of them again: `python -m tests.benchmarks.token_costs measure <checkpoint>`.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from components.config import Settings
from components.config.policy import CheckpointModel
from components.processes.memory import tensor_sizes


class Rate(NamedTuple):
    """``products``: multiplications and additions a second. ``rest``: seconds of everything else, for each layer."""

    products: float
    rest: float


RATES = {
    "sampling": Rate(6.1e10, 4.5e-5),
    "scoring": Rate(8.3e10, 1.1e-5),
    "learning": Rate(6.9e10, 2.7e-5),
}
"""Measured in November 2026, float32, on a model of 0.64 million parameters and on one of 135 million."""
PROBED = Rate(0.050, 0.027)
"""Seconds of `probe_products` and `probe_rest` on the CPU of `RATES`."""
IMPORTS, LOADING = 6.5, 3e-8
"""Seconds until torch and transformers are there, and seconds a parameter to read a model or to write it."""
PASSES = {"sampling": 1, "scoring": 1, "learning": 3}
"""Products of a token, in forward passes: a backward pass is two."""


@dataclass(frozen=True, slots=True)
class Shape:
    """``matrices``: parameters that a token is multiplied with; looking an embedding up costs nothing, its use as the
    output layer does."""

    matrices: float
    layers: float


def seconds(kind: str, shape: Shape, tokens: float) -> float:
    """Processor time of ``tokens`` tokens, where ``kind`` is one of `RATES`."""
    rate = RATES[kind]
    return tokens * (PASSES[kind] * 2 * shape.matrices / rate.products + shape.layers * rate.rest)


def slowness(shape: Shape) -> float:
    """How many times as long as on the CPU of `RATES` a model of this shape takes here and now.

    Hosts of virtual machines differ by a factor of two and more, and in small operations more than in products.
    """
    here = machine()
    products = sum(PASSES[kind] * 2 * shape.matrices / rate.products for kind, rate in RATES.items())
    rest = sum(shape.layers * rate.rest for rate in RATES.values())
    return (here.products * products + here.rest * rest) / (products + rest)


@cache
def machine() -> Rate:
    """How many times as long as on the CPU of `RATES` both probes take; a quarter of a second to measure."""
    return Rate(*(min(probe() for _ in range(3)) / known for probe, known in zip(PROBES, PROBED, strict=True)))


def probe_products() -> float:
    """Processor seconds of products that fill the caches."""
    import numpy as np  # where it is used: most commands estimate nothing

    weight, rows = np.full((1536, 576), 0.5, np.float32), np.full((576, 256), 0.5, np.float32)
    began = time.process_time()
    for _ in range(10):
        weight @ rows
    return time.process_time() - began


def probe_rest() -> float:
    """Processor seconds of many small operations."""
    import numpy as np

    state, weight = np.full((48, 48), 0.5, np.float32), np.eye(48, dtype=np.float32)
    began = time.process_time()
    for _ in range(4000):
        state = np.tanh(state @ weight)
    return time.process_time() - began


PROBES = (probe_products, probe_rest)
"""Where `machine` measures its two figures; their seconds on the CPU of `RATES` are `PROBED`."""


def loading(shape: Shape) -> float:
    """Processor time until a stage has its model."""
    return IMPORTS + LOADING * shape.matrices


def shape_of(settings: Settings) -> Shape:
    """Of the policy. For a folder by the tables of its safetensors; of one that is not there nothing is known."""
    model = settings.policy.model
    if isinstance(model, CheckpointModel):
        return tables(Path(model.path))
    attention = 2 * model.hidden_size * model.head_dim * (model.heads + model.kv_heads)
    mlp = 3 * model.hidden_size * model.intermediate_size * max(1, model.experts_per_token if model.experts else 1)
    matrices = model.layers * (attention + mlp) + model.hidden_size * model.vocab_size
    return Shape(matrices, model.layers)


def tables(folder: Path) -> Shape:
    """Of a checkpoint folder, by the tables at the heads of its safetensors; nothing is loaded."""
    sizes = tensor_sizes(folder)
    lookup = sum(size for name, size in sizes.items() if "embed_tokens" in name or "wte" in name)
    head = sum(size for name, size in sizes.items() if "lm_head" in name)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        layers = float(config["num_hidden_layers"])
    except (OSError, ValueError, KeyError, TypeError):
        layers = 0.0  # it is refused when it is loaded, with a better word for it
    return Shape(max(1.0, sum(sizes.values()) - (lookup if head else 0)), layers)
