"""The contiguous range of a flat tensor that one rank holds, as DCP takes it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
)
from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType
from torch.distributed.tensor import DTensor, Shard


@dataclass(frozen=True)
class Piece:
    """Elements from ``start`` of a tensor of this ``shape``, in row-major order.

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
