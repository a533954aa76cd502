"""What a state consists of: weights by name, and of each that has been updated its moments and number of updates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
)
from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType
from torch.distributed.tensor import DTensor, Shard
from torch.nn import Parameter

MOMENTS = ("exp_avg", "exp_avg_sq")
"""What AdamW keeps for every element of a parameter."""
WEIGHT, STEP = "weight/", "optimizer/step/"
"""Before the name of a parameter in a state."""


@dataclass(frozen=True)
class Piece:
    """What one rank holds of a flat tensor: elements from ``start`` of a tensor of this ``shape``, in row-major order.

    The three methods are DCP's protocol for objects that are no tensors (`torch.distributed._checkpointable`).
    """

    values: Tensor
    """``[N]``; a view, so that what is read into it arrives. N is 0 where this rank holds nothing."""
    start: int
    shape: torch.Size

    @classmethod
    def of(cls, tensor: Tensor) -> Piece:
        """A whole tensor, or this rank's rows of a DTensor that is spread over ranks by rows."""
        if not isinstance(tensor, DTensor):
            return cls(tensor.detach().view(-1), 0, tensor.shape)
        (placement,) = tensor.placements
        assert isinstance(placement, Shard) and placement.dim == 0, f"not spread by rows: {placement}"
        ranks, rank = tensor.device_mesh.size(), tensor.device_mesh.get_local_rank()
        rows = -(-tensor.shape[0] // ranks) * rank  # all ranks but the last ones have the same number of rows
        row = tensor.shape[1:].numel()
        return cls(tensor.to_local().detach().view(-1), min(rows, tensor.shape[0]) * row, tensor.shape)

    def to(self, values: Tensor) -> Piece:
        """The same range with other values."""
        return Piece(values, self.start, self.shape)

    @property
    def chunk(self) -> ChunkStorageMetadata:
        return ChunkStorageMetadata(torch.Size([self.start]), self.values.shape)

    def __create_write_items__(self, name: str, _: object) -> list[WriteItem]:
        if not len(self.values):
            return []
        data = TensorWriteData(self.chunk, TensorProperties(self.values.dtype), torch.Size([self.shape.numel()]))
        return [WriteItem(MetadataIndex(name, [self.start]), WriteItemType.SHARD, tensor_data=data)]

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        return [self.chunk] if len(self.values) else []

    def __get_tensor_shard__(self, _: int) -> Tensor:
        return self.values


class Contents(ABC):
    """This rank's part of the weights and moments. Nothing here is collective."""

    shapes: Mapping[str, torch.Size]
    """Whole shapes of what is trained, by the names that the parameters have in the model."""
    as_one: ClassVar[bool] = False
    """Whether all parameters have made the same number of updates."""

    @abstractmethod
    def piece(self, name: str, moment: str | None = None) -> Piece:
        """This rank's part of a weight, or of one of its moments; a view."""

    @abstractmethod
    def updates(self) -> Mapping[str, float]:
        """Updates of each parameter that has moments."""

    @abstractmethod
    def reset(self, updates: Mapping[str, float]) -> None:
        """Moments of 0 after so many updates; those that are not named become as before the first."""

    def pieces(self) -> dict[str, Piece]:
        """All of it by name, but for the numbers of updates."""
        found = {f"{WEIGHT}{name}": self.piece(name) for name in self.shapes}
        for name in self.updates():
            found |= {f"optimizer/{moment}/{name}": self.piece(name, moment) for moment in MOMENTS}
        return found


class AdamWContents(Contents):
    """Parameters and an optimizer of PyTorch; the parameters may be DTensors."""

    def __init__(self, parameters: Mapping[str, Parameter], optimizer: torch.optim.AdamW) -> None:
        self._parameters, self._optimizer = parameters, optimizer
        self.shapes = {name: parameter.shape for name, parameter in parameters.items()}

    def piece(self, name: str, moment: str | None = None) -> Piece:
        parameter = self._parameters[name]
        return Piece.of(parameter if moment is None else self._optimizer.state[parameter][moment])

    def updates(self) -> dict[str, float]:
        states = {name: self._optimizer.state.get(parameter) for name, parameter in self._parameters.items()}
        return {name: float(state["step"]) for name, state in states.items() if state}

    def reset(self, updates: Mapping[str, float]) -> None:
        self._optimizer.state.clear()
        fused = self._optimizer.param_groups[0]["fused"]
        for name, count in updates.items():
            parameter = self._parameters[name]
            step = torch.tensor(count, dtype=torch.float32, device=parameter.device if fused else None)
            moments: dict[str, Tensor] = {moment: torch.zeros_like(parameter.detach()) for moment in MOMENTS}
            self._optimizer.state[parameter] = {"step": step, **moments}
