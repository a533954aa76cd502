"""Weights in safetensors files: written in buckets, and read one tensor at a time."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from components.files import os_errors
from components.policy.lazily import Lazily

ALIGNED = 8
"""Bytes that the length of the text is a multiple of."""
DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""What the format calls the precisions."""
BUCKET = 64 * 2**20
"""Bytes of weights that are held at a time on their way from the learner into files or servers. A larger tensor is a
bucket of its own."""
SUFFIX = ".safetensors"


def header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """The header of a file that is written tensor by tensor: the library needs all of them at once.

    Eight bytes with the length of a JSON text, then the text: precision, shape and place of every tensor
    (github.com/huggingface/safetensors, "Format"). The tensors follow in the order of ``tensors``, contiguous and
    without gaps. Shapes and precisions are read, values are not.
    """
    entries: dict[str, Any] = {"__metadata__": {"format": "pt", **metadata}}
    start = 0
    for name, tensor in tensors.items():
        end = start + tensor.numel() * tensor.element_size()
        entries[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNED)
    return struct.pack("<Q", len(text)) + text


class Stored(Lazily):
    """Tensors of safetensors files by name, each read when it is used, into memory of its own.

    Args:
        prefix: only tensors whose names begin with it, and without it.
        dtype: precision that floating-point tensors are read in; None: that of the file.

    Raises:
        ValueError: two files hold a tensor of the same name.
    """

    def __init__(self, files: Sequence[Path], prefix: str = "", dtype: torch.dtype | None = None) -> None:
        self._prefix, self._dtype, self._files = prefix, dtype, dict[str, Path]()
        for path in files:
            with safe_open(path, "pt") as file:
                names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118 - not iterable
            if twice := self._files.keys() & {name.removeprefix(prefix) for name in names}:
                raise ValueError(f"{path} holds {sorted(twice)[0]}, which another file holds too")
            self._files.update((name.removeprefix(prefix), path) for name in names)
        self.names = self._files.keys()

    @classmethod
    def folder(cls, path: Path, dtype: torch.dtype | None = None) -> Stored:
        """The tensors of all safetensors files right in a folder."""
        return cls(sorted(path.glob(f"*{SUFFIX}")), dtype=dtype)

    def __getitem__(self, name: str) -> Tensor:
        # A file stays mapped, and counts as memory of this process, for as long as it is open.
        with safe_open(self._files[name], "pt") as file:
            tensor: Tensor = file.get_tensor(f"{self._prefix}{name}")
            return tensor.to(self._dtype if tensor.is_floating_point() else None, copy=True)

    @property
    def files(self) -> list[Path]:
        """The files that hold them, in order."""
        return sorted(set(self._files.values()))

    def shape(self, name: str) -> torch.Size:
        """The shape of a tensor, which is not read."""
        with safe_open(self._files[name], "pt") as file:
            return torch.Size(file.get_slice(f"{self._prefix}{name}").get_shape())


def buckets(
    weights: Mapping[str, Tensor], dtype: torch.dtype | None = None, device: torch.device | str = "cpu"
) -> Iterator[dict[str, Tensor]]:
    """All ``weights`` in order, some at a time, detached and contiguous; at most `BUCKET` bytes of them are held."""
    held: dict[str, Tensor] = {}
    size = 0
    for name, weight in weights.items():
        tensor = weight.detach().to(device, dtype or weight.dtype).contiguous()
        if held and size + tensor.nbytes > BUCKET:
            yield held
            held, size = {}, 0
        held[name] = tensor
        size += tensor.nbytes
        del weight, tensor
    if held:
        yield held


def write_buckets(weights: Mapping[str, Tensor], folder: Path, dtype: torch.dtype | None = None) -> Iterator[Path]:
    """Write ``weights`` into safetensors files of a folder, one bucket each; yields every file once it is whole.

    Raises:
        InputError: the disk is full, or the folder cannot be written to.
    """
    for number, held in enumerate(buckets(weights, dtype), start=1):
        path = folder / f"bucket-{number:05d}{SUFFIX}"
        with os_errors("write", path):
            save_file(held, path, metadata={"format": "pt"})
        yield path
