"""The files of a state: one safetensors file for each rank, written from memory and read in parts.

The keys of the metadata are those of DCP's `HuggingFaceStorageReader`, which reads these files too. That reader takes a
tensor to end where its last chunk ends, so a folder that lacks a file may look whole to it: here every file says of how
many it is one, and each tensor must be there from its first element to its last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

from components.errors import InputError
from components.learner.state.contents import STEP, Piece
from components.policy.stored import DTYPES, header

NAME = re.compile(r"shard-([0-9]{5,})-of-([0-9]{5,})\.safetensors")
AT_ONCE = 2**22
"""Elements that are copied, sent or received at once."""
OFFSETS, SHAPES = "DCP_SHARDING_INFO", "shapes"
"""Keys of a file's metadata, both JSON: where its part of a tensor begins, and the shape of the whole."""
HOW = "remove the checkpoint that it belongs to: the run goes on from the one before it"


def name_of(rank: int, ranks: int) -> str:
    return f"shard-{rank + 1:05d}-of-{ranks:05d}.safetensors"


def encoded(pieces: Mapping[str, Piece]) -> Iterator[bytes | memoryview]:
    """The bytes of a file, in parts of which none is larger than `AT_ONCE` elements or the header."""
    names = sorted(pieces, key=lambda name: (-pieces[name].values.element_size(), name))  # so that all are aligned
    offsets = {name: {"saved_offsets": [pieces[name].start]} for name in names}
    shapes = {name: list(pieces[name].shape) for name in names}
    metadata = {OFFSETS: dump(offsets), SHAPES: dump(shapes)}
    yield header({name: pieces[name].values for name in names}, metadata)
    for name in names:
        for part in torch.split(pieces[name].values, AT_ONCE):
            yield part.cpu().view(torch.uint8).numpy().data


def dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


@dataclass(frozen=True)
class Stored:
    """What lies in a folder: where each part of a tensor is, the shapes of the whole ones, and numbers of updates."""

    metadata: Metadata
    shapes: Mapping[str, torch.Size]
    updates: Mapping[str, float]

    def file_of(self, index: MetadataIndex) -> str:
        """Name of the file that has a part."""
        files: Mapping[MetadataIndex, str] = self.metadata.storage_data
        return files[index]


def stored(folder: Path) -> Stored:
    """The headers of all files of a folder.

    Raises:
        InputError: there is no such state, a file of it is missing or damaged, or they do not belong together.
    """
    found: dict[str, TensorStorageMetadata] = {}
    shapes: dict[str, torch.Size] = {}
    files: dict[MetadataIndex, str] = {}
    updates: dict[str, float] = {}
    for path in paths(folder):
        try:
            with safe_open(path, "pt") as file:
                _add(file, path.name, found, shapes, files)
                steps = [key for key in file.keys() if key.startswith(STEP)]  # noqa: SIM118 - it is no mapping
                updates |= {key.removeprefix(STEP): float(file.get_tensor(key)) for key in steps}
        except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"not a whole shard of a state: {error}", where=path, how=HOW) from error
    for name, tensor in found.items():
        end = 0
        for chunk in sorted(tensor.chunks, key=lambda chunk: chunk.offsets[0]):
            if chunk.offsets[0] != end:
                break
            end += chunk.sizes[0]
        if end != prod(shapes[name]) or len(tensor.chunks) != len({chunk.offsets[0] for chunk in tensor.chunks}):
            raise InputError(f"parts of {name!r} are missing, or there twice", where=folder, how=HOW)
    return Stored(Metadata(dict(found), storage_data=files), shapes, updates)


def _add(
    file: Any,
    name: str,
    found: dict[str, TensorStorageMetadata],
    shapes: dict[str, torch.Size],
    files: dict[MetadataIndex, str],
) -> None:
    """Note what one open file has."""
    metadata = file.metadata() or {}
    offsets, whole = json.loads(metadata[OFFSETS]), json.loads(metadata[SHAPES])
    dtypes = {text: dtype for dtype, text in DTYPES.items()}
    for key in sorted(file.keys()):
        part, shape = file.get_slice(key), torch.Size(whole[key])
        (length,), (start,) = part.get_shape(), offsets[key]["saved_offsets"]
        if shapes.setdefault(key, shape) != shape:
            raise ValueError(f"{key!r} has the shape {list(shape)} here, and {list(shapes[key])} in another shard")
        properties = TensorProperties(dtypes[part.get_dtype()])
        tensor = found.setdefault(key, TensorStorageMetadata(properties, torch.Size([prod(shape)]), []))
        tensor.chunks.append(ChunkStorageMetadata(torch.Size([start]), torch.Size([length])))
        files[MetadataIndex(key, [start])] = name


def paths(folder: Path) -> list[Path]:
    """The files of a folder, in the order of the ranks that wrote them.

    Raises:
        InputError: one is missing.
    """
    there = {path.name: path for path in folder.glob("shard-*")}
    counts = {int(match[2]) for name in there if (match := NAME.fullmatch(name))}
    if not counts:
        what = "no state of this version: there is no shard of it"
        raise InputError(what, where=folder, how="start the run from the beginning, or with the code that wrote it")
    if len(counts) > 1:
        raise InputError(f"shards of several states: of {sorted(counts)}", where=folder, how=HOW)
    (count,) = counts
    for rank in range(count):
        if name_of(rank, count) not in there:
            raise InputError("this shard of the state is missing", where=folder / name_of(rank, count), how=HOW)
    return [there[name_of(rank, count)] for rank in range(count)]
