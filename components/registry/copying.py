"""Copies of trees, digested while they are made: every byte is read once."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

from components.errors import InputError
from components.files import manifest, sha256_json

BLOCK = 2**20
STRETCH = 64 * BLOCK
"""Bytes that are flushed, and let go of, together."""
CAN_DROP_CACHE = hasattr(os, "posix_fadvise")
"""Whether the system takes the advice that a file will not be read soon."""


def copy_tree(source: Path, target: Path, digest: str, *, soon: bool = True) -> None:
    """Copy a tree into an empty folder and check what was copied: the source may have changed since it was digested.

    Args:
        soon: Whether the copy is going to be read soon. If not, no more than a stretch of each of its files stays in
            the memory that the system keeps files in, where a large copy would push out what others need.

    Raises:
        InputError: what was copied does not have this digest.
    """
    copied = manifest(source, lambda path: _copy(path, target / path.relative_to(source), soon))
    if sha256_json(copied) != digest:
        raise InputError("the checkpoint changed while it was copied", where=source, how="let its writer finish")


def _copy(source: Path, target: Path, soon: bool) -> str:
    """Hex sha256 of what was written."""
    digest, written, flushed = hashlib.sha256(), 0, 0
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb", buffering=0) as reader, target.open("xb") as writer:
        while block := reader.read(BLOCK):
            digest.update(block)
            writer.write(block)
            written += len(block)
            if CAN_DROP_CACHE and not soon and written - flushed >= STRETCH:
                _drop_cache(writer, flushed, written - flushed)
                flushed = written
    return digest.hexdigest()


def _drop_cache(writer: BinaryIO, start: int, length: int) -> None:
    """Of a stretch of a file, which has to be on the disk before."""
    writer.flush()
    os.fdatasync(writer.fileno())
    os.posix_fadvise(writer.fileno(), start, length, os.POSIX_FADV_DONTNEED)
