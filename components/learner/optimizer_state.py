"""Weights and AdamW state in one safetensors file, so that resuming needs no pickle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import Parameter

Parameters = Mapping[str, Parameter]
WEIGHT = "weight/"
"""Before the name of a parameter in the file."""


def state_tensors(parameters: Parameters, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Every parameter and every per-parameter optimizer tensor by its name in the file; no copies."""
    tensors = {f"{WEIGHT}{name}": p.detach().contiguous() for name, p in parameters.items()}
    for name, parameter in parameters.items():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer/{key}/{name}"] = value.contiguous()
    return tensors


def read_weights(path: Path) -> dict[str, Tensor]:
    """The parameters alone of a file of `state_tensors`, by name."""
    return {name.removeprefix(WEIGHT): t for name, t in load_file(path).items() if name.startswith(WEIGHT)}


def load_state(path: Path, parameters: Parameters, optimizer: torch.optim.Optimizer) -> None:
    """Read a file of `state_tensors` into the same parameters and optimizer.

    Raises:
        ValueError: the file belongs to a model with other parameters.
    """
    tensors = load_file(path)
    weights = {name.removeprefix("weight/"): t for name, t in tensors.items() if name.startswith("weight/")}
    if weights.keys() != parameters.keys():
        raise ValueError(f"{path} belongs to another model: {sorted(weights.keys() ^ parameters.keys())[:5]}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
    state: dict[int, dict[str, Tensor]] = {}
    indices = {name: index for index, name in enumerate(parameters)}
    for full_name, tensor in tensors.items():
        kind, _, rest = full_name.partition("/")
        if kind == "optimizer":
            key, _, name = rest.partition("/")
            state.setdefault(indices[name], {})[key] = tensor
    groups: Any = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
