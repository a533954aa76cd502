"""Bytes between rank 0, which sees a folder, and ranks on nodes that do not, through a process group of the CPU.

A failure on either side does not break the exchange off, or the other rank would wait for what never comes: the rest is
sent and ignored, and the error is raised at the end.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor, distributed

Group = Any  # torch.distributed.ProcessGroup


@contextmanager
def token_in(folder: Path) -> Iterator[str]:
    """On rank 0: the name of a new file in the folder, which is made where it is missing; the file goes with the
    block."""
    folder.mkdir(exist_ok=True)
    token = folder / f".{uuid4().hex}"
    token.touch()
    try:
        yield token.name
    finally:
        token.unlink(missing_ok=True)


def blind_to(token: Path, group: Group) -> list[int]:
    """Numbers of the ranks that do not see the file ``token``; collective."""
    seen: list[Any] = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(seen, token.exists(), group=group)
    return [rank for rank, sees in enumerate(seen) if not sees]


def send_file(chunks: Iterable[bytes | memoryview], group: Group) -> None:
    """Give rank 0 the content of a file."""
    try:
        for chunk in chunks:
            _send_size(len(chunk), group)
            distributed.send(torch.frombuffer(bytearray(chunk), dtype=torch.uint8), dst=0, group=group)
    finally:
        _send_size(0, group)


def receive_file(path: Path, rank: int, group: Group) -> None:
    """On rank 0: write the file that ``rank`` sends. Raises OSError where it cannot be written."""
    failed: OSError | None = None
    size = torch.zeros(1, dtype=torch.long)
    with ExitStack() as stack:
        file = None
        while _received(size, rank, group).item():
            part = _received(torch.empty(int(size), dtype=torch.uint8), rank, group)
            if failed is None:
                try:
                    file = file or stack.enter_context(path.open("wb"))
                    file.write(part.numpy().data)
                except OSError as error:
                    failed = named(error, path)
        if file is not None and failed is None:
            flush(file)
    if failed is not None:
        raise failed


def send_values(values: Tensor, rank: int, group: Group) -> None:
    """On rank 0: give a rank elements that it knows the number and type of."""
    distributed.send(values.contiguous(), dst=rank, group=group)


def receive_values(length: int, dtype: torch.dtype, group: Group) -> Tensor:
    """Elements of rank 0, ``[length]``."""
    return _received(torch.empty(length, dtype=dtype), 0, group)


def write_file(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file and flush it to the disk, which may be that of another machine. Raises OSError with its name."""
    try:
        with path.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
            flush(file)
    except OSError as error:
        raise named(error, path) from None


def flush(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def named(error: OSError, path: Path) -> OSError:
    """The error of a write, which does not name its file by itself."""
    return OSError(error.errno, error.strerror, str(path))


def _send_size(size: int, group: Group) -> None:
    distributed.send(torch.tensor([size]), dst=0, group=group)


def _received(buffer: Tensor, rank: int, group: Group) -> Tensor:
    distributed.recv(buffer, src=rank, group=group)
    return buffer
