"""The header of a GGUF file (version 2 or 3), read with every length checked against the file.

The readers of `gguf` and `transformers` believe what the header says: a length that points past the end makes them fail
with an error that names no file, or take memory without end. So a file is read here first.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from components.config.shipped import install
from components.errors import InputError
from components.files import os_errors
from components.opening import open_regular

MAGIC, VERSIONS = b"GGUF", (2, 3)
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Types of metadata and how `struct` calls them; 8 is a string, 9 an array."""
STRING, ARRAY = 8, 9
MAX_DIMENSIONS = 4
"""Of a tensor, in ggml."""
MAX_ALIGNMENT = 2**16
HOW = "get the file again, and compare its digest with the published one"


@dataclass(frozen=True, slots=True)
class Header:
    """What is needed before a file is converted."""

    architecture: str
    metadata: dict[str, Any]
    """Single values by key; of an array its length."""
    shapes: dict[str, tuple[int, ...]]
    types: frozenset[str]
    """How tensors are stored: F32, Q4_1 ..."""

    @property
    def parameters(self) -> int:
        return sum(prod(shape) for shape in self.shapes.values())

    @property
    def layers(self) -> int:
        """As the metadata have it; 0 where they do not say."""
        found = self.metadata.get(f"{self.architecture}.block_count", 0)
        return found if isinstance(found, int) else 0


def read_header(path: Path) -> Header:
    """Read the header of ``path`` and see that all its tensors lie inside the file.

    Raises:
        InputError: not a GGUF file, another version or byte order, cut off, a type that ggml does not have; or the
            package `gguf`, which knows the sizes of quantised tensors, is not installed.
    """
    sizes = _type_sizes()
    with _mapped(path) as data:
        source = _Source(data, path)
        if source.take(4) != MAGIC:
            raise InputError("not a GGUF file", where=path, how="name a file that begins with the four letters GGUF")
        version, tensor_count, key_count = source.unpack("IQQ")
        if version not in VERSIONS:
            said = "2 and 3, little-endian"
            raise InputError(f"GGUF version {version} cannot be read; versions {said}, can", where=path, how=HOW)
        metadata = dict(_entry(source) for _ in range(key_count))
        entries = [_tensor(source) for _ in range(tensor_count)]
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 0 < alignment <= MAX_ALIGNMENT:
            raise InputError(f"the alignment of its tensors is {alignment!r}", where=path, how=HOW)
        start = -(-source.place // alignment) * alignment
        for name, shape, kind, offset in entries:
            end = start + offset + _bytes(name, shape, kind, sizes, path)
            if end > len(data):
                what = f"the file is cut off: tensor {name} ends at byte {end:,}, the file at {len(data):,}"
                raise InputError(what, where=path, how=HOW)
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str) or not entries:
        raise InputError("the file names no architecture, or holds no tensors", where=path, how=HOW)
    shapes = {name: shape for name, shape, *_ in entries}
    return Header(architecture, metadata, shapes, frozenset(sizes[kind][0] for _, _, kind, _ in entries))


def require_gguf() -> None:
    """Raises InputError where the package `gguf` is not installed."""
    if importlib.util.find_spec("gguf") is None:
        raise InputError("GGUF files are read by the package gguf, which is not installed", how=install("llm"))


def _type_sizes() -> dict[int, tuple[str, int, int]]:
    """Type of a tensor -> its name, values in a block, bytes of a block."""
    require_gguf()
    from gguf.constants import GGML_QUANT_SIZES

    return {int(kind): (kind.name, values, size) for kind, (values, size) in GGML_QUANT_SIZES.items()}


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    with os_errors("read", path), open_regular(path) as file:
        if not os.fstat(file.fileno()).st_size:  # which cannot be mapped
            raise InputError("not a GGUF file", where=path, how="name a file that begins with the four letters GGUF")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


class _Source:
    """A place in the file that moves forward and never past the end."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self._data, self._path, self.place = data, path, 0

    def skip(self, count: int) -> int:
        """Move on by ``count`` bytes; returns where they begin."""
        start, end = self.place, self.place + count
        if end > len(self._data):
            raise InputError(f"the header is cut off at byte {len(self._data):,}", where=self._path, how=HOW)
        self.place = end
        return start

    def take(self, count: int) -> bytes:
        start = self.skip(count)
        return self._data[start : self.place]

    def unpack(self, kinds: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{kinds}", self.take(struct.calcsize(f"<{kinds}")))

    def text(self) -> str:
        raw = self.take(self.unpack("Q")[0])
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.refusal("a text in the header is not UTF-8") from error

    def refusal(self, what: str) -> InputError:
        return InputError(what, where=f"{self._path}, byte {self.place:,}", how=HOW)


def _entry(source: _Source) -> tuple[str, Any]:
    """One key of the metadata and its value, or the length of its array."""
    key, (kind,) = source.text(), source.unpack("I")
    if kind == STRING:
        return key, source.text()
    if kind == ARRAY:
        inner, count = source.unpack("IQ")
        if inner == STRING:
            for _ in range(count):
                source.skip(source.unpack("Q")[0])
        else:
            source.skip(count * struct.calcsize(_scalar(inner, source)))
        return key, count
    return key, source.unpack(_scalar(kind, source))[0]


def _scalar(kind: int, source: _Source) -> str:
    if kind not in SCALARS:
        raise source.refusal(f"the header has a value of type {kind}, which cannot be read")
    return SCALARS[kind]


def _tensor(source: _Source) -> tuple[str, tuple[int, ...], int, int]:
    """Name, shape, type and offset of one tensor."""
    name, (dimensions,) = source.text(), source.unpack("I")
    if dimensions > MAX_DIMENSIONS:
        raise source.refusal(f"tensor {name} has {dimensions} dimensions")
    shape = source.unpack(f"{dimensions}Q")
    kind, offset = source.unpack("IQ")
    return name, shape, kind, offset


def _bytes(name: str, shape: tuple[int, ...], kind: int, sizes: dict[int, tuple[str, int, int]], path: Path) -> int:
    if kind not in sizes:
        what = f"tensor {name} is of type {kind}, which the installed gguf does not know"
        raise InputError(what, where=path, how="use a file of another type, such as F16 or Q8_0")
    _, values, size = sizes[kind]
    return prod(shape) // values * size
