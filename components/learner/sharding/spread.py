"""What every sharding over several ranks has in common: how its state is gathered into one file and scattered again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import Parameter

from components.learner.ranks import Ranks
from components.learner.sharding.base import Sharding

MOMENTS = ("exp_avg", "exp_avg_sq")
"""What AdamW keeps for every element of a parameter."""


class Spread(Sharding):
    """Weights, moments or both are spread over ranks. The file is that of `components.learner.optimizer_state`.

    Gathering goes parameter by parameter: a rank holds one whole tensor more than its share, and rank 0 all of them in
    host memory until they are written (12 bytes a parameter).
    """

    ranks: Ranks
    parameters: Mapping[str, Parameter]
    """What is trained."""
    shapes: Mapping[str, torch.Size]
    """Whole shapes, by the names that the parameters have in the model."""

    @abstractmethod
    def reset(self, steps: float | None) -> None:
        """Moments of 0 after so many updates; as before the first update where that is None."""

    @abstractmethod
    def gather(self, name: str, moment: str | None = None) -> Tensor:
        """The whole fp32 weight, or one of its moments; collective, on every rank."""

    @abstractmethod
    def frozen(self, name: str) -> Tensor:
        """The whole value of a parameter that is not trained; collective, on every rank."""

    @abstractmethod
    def scatter(self, value: Tensor, name: str, moment: str | None = None) -> None:
        """Take this rank's share of a whole tensor, which is rank 0's; collective."""

    def refresh(self) -> None:
        """Make what the forward pass reads agree with the scattered weights; collective."""

    def whole(self, name: str) -> Tensor:
        return self.gather(name) if name in self.parameters else self.frozen(name)

    def broken(self) -> int:
        flags = torch.tensor([float(not own.isfinite().all()) for own in map(local, self.parameters.values())])
        return int(self.ranks.largest(flags).sum())

    def save(self, path: Path) -> None:
        self.snapshot(path)()

    def snapshot(self, path: Path) -> Callable[[], None]:
        tensors = {}
        for key, value in self._whole():
            if self.ranks.rank == 0:
                tensors[key] = value.detach().to("cpu", copy=True).contiguous()
        return (lambda: save_file(tensors, path)) if self.ranks.rank == 0 else (lambda: None)

    def _whole(self) -> Iterator[tuple[str, Tensor]]:
        steps = self.steps
        for name in self.parameters:
            yield f"weight/{name}", self.gather(name)
            if steps is not None:
                yield f"optimizer/step/{name}", torch.tensor(steps, dtype=torch.float32)
                for moment in MOMENTS:
                    yield f"optimizer/{moment}/{name}", self.gather(name, moment)

    def check(self, path: Path) -> None:
        with safe_open(path, "pt") as file:
            check_model(file, self.shapes, path)
            steps_of(file, self.shapes, path)

    def load(self, path: Path) -> None:
        with safe_open(path, "pt") if self.ranks.rank == 0 else nullcontext() as file:
            steps = self.ranks.of_first(lambda: steps_of(file, self.shapes, path))
            self.reset(steps)
            for name, shape in self.shapes.items():
                for moment in (None, *(MOMENTS if steps is not None else ())):
                    key = f"weight/{name}" if moment is None else f"optimizer/{moment}/{name}"
                    value = torch.empty(shape) if file is None else file.get_tensor(key)
                    self.scatter(value.to(self.device, torch.float32), name, moment)
        self.refresh()


def local(parameter: Any) -> Tensor:
    """What this rank holds of a parameter: all of it, its share, or nothing."""
    if hasattr(parameter, "ds_tensor"):
        return parameter.ds_tensor  # type: ignore[no-any-return]
    return parameter.to_local() if hasattr(parameter, "to_local") else parameter.detach()  # type: ignore[no-any-return]


def trained(module: nn.Module) -> list[tuple[str, Parameter]]:
    """Parameters that have a gradient, by name; with an adapter the others are the base."""
    return [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]


def keys_of(file: Any) -> list[str]:
    """The keys of an open safetensors file, which cannot be iterated itself."""
    keys: list[str] = file.keys()
    return keys


def check_model(file: Any, own: Mapping[str, torch.Size], path: Path) -> None:
    """Refuse the state of a model with other parameters, or with other shapes of them."""
    found = {key.removeprefix("weight/") for key in keys_of(file) if key.startswith("weight/")}
    if found != own.keys():
        raise ValueError(f"{path} belongs to another model: {sorted(found ^ own.keys())[:5]}")
    for name, shape in own.items():
        other = file.get_slice(f"weight/{name}").get_shape()
        if list(shape) != list(other):
            raise ValueError(f"{path} belongs to another model: {name} is {other} there and {list(shape)} here")


def steps_of(file: Any, names: Mapping[str, Any], path: Path) -> float | None:
    """Updates behind a state; None before the first. It must be the same number for every parameter: they are stepped
    as one."""
    known = [f"optimizer/step/{name}" for name in names]
    found = {key: float(file.get_tensor(key)) for key in keys_of(file) if key in set(known)}
    if not found:
        return None
    if len(found) < len(known) or len(set(found.values())) > 1:
        raise ValueError(
            f"{path}: the parameters have made different numbers of updates: {sorted(set(found.values()))}"
        )
    return found[known[0]]
