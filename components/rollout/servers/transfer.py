"""How weights get from the run into a server."""

from __future__ import annotations

import asyncio
import math
import shutil
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

import torch
from torch import Tensor

from components.files import os_errors
from components.policy.stored import SUFFIX, Stored, buckets, write_buckets
from components.rollout.servers.background import gathered, in_a_thread
from components.rollout.servers.client import Facts, ServerClient, ServerFault
from components.rollout.servers.plugin.evenkeel_groups import broadcast, dist, own_address, process_group
from components.rollout.servers.vllm import VllmClient

WEIGHTS = "weights"
POLL = 0.01
"""Seconds between two looks whether a server has come to its process group."""
B = TypeVar("B")
T = TypeVar("T")


class Transfer(ABC, Generic[B]):
    """Weights of one hand-over after the other, bucket by bucket: the next one is made while one is taken in."""

    def __init__(self, dtype: torch.dtype, timeout: float) -> None:
        self._dtype, self._timeout = dtype, timeout

    def write(self, weights: Mapping[str, Tensor], folder: Path) -> Iterator[Path]:
        """Write weights into a new folder; the files, each when it is whole."""
        with os_errors("write", folder):
            folder.mkdir(parents=True)
        yield from write_buckets(weights, folder, self._dtype)

    @abstractmethod
    def buckets(self, number: int, weights: Mapping[str, Tensor]) -> Iterator[B]:
        """The weights of hand-over ``number``; those of an earlier one need not be there any more."""

    async def open(self, client: ServerClient, facts: Facts) -> None:
        """Get to know a server that has just been opened."""

    @abstractmethod
    async def send(self, client: ServerClient, bucket: B) -> None:
        """Let a server that holds still take a bucket in."""

    def close(self) -> None:
        """Remove what was written for servers."""


async def ahead(buckets: Iterator[B]) -> AsyncIterator[B]:
    """The same, each made by a thread while the one before is in use."""
    coming = asyncio.ensure_future(in_a_thread(lambda: next(buckets, None)))
    try:
        while (bucket := await coming) is not None:
            coming = asyncio.ensure_future(in_a_thread(lambda: next(buckets, None)))
            yield bucket
    finally:
        coming.cancel()


class Spool(Stored):
    """Weights in files that servers can read, in a folder that is there for as long as this object is."""

    def __init__(self, folder: Path, files: Iterator[Path]) -> None:
        self._gone = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        super().__init__(list(files))


class File(NamedTuple):
    """One file of a hand-over's folder, and whether it is the last."""

    path: Path
    last: bool


class FileTransfer(Transfer[File]):
    """A folder of safetensors files for each hand-over, each whole before any server hears of it; the folder before
    goes when the next is whole."""

    def __init__(self, dtype: torch.dtype, timeout: float, folder: Path) -> None:
        super().__init__(dtype, timeout)
        self._folder, self._whole = folder.absolute(), dict[int, list[Path]]()

    def buckets(self, number: int, weights: Mapping[str, Tensor]) -> Iterator[File]:
        files, written = self._whole.get(number), list[Path]()
        for path, last in marked(iter(files) if files else self._write(f"{WEIGHTS}-{number}", weights)):
            written.append(path)
            if last and files is None:
                self._whole = {n: whole for n, whole in self._whole.items() if n > number} | {number: written}
                self._remove_before(number)
            yield File(path, last)

    def _write(self, name: str, weights: Mapping[str, Tensor]) -> Iterator[Path]:
        if isinstance(weights, Stored):
            yield from weights.files
            return
        target = self._folder / name
        shutil.rmtree(target, ignore_errors=True)
        yield from self.write(weights, target)

    async def send(self, client: ServerClient, bucket: File) -> None:
        if bucket.last or not client.takes_whole_folders:
            await client.update({"path": str(bucket.path)}, self._timeout)

    def close(self) -> None:
        self._remove_before(math.inf)

    def _remove_before(self, number: float) -> None:
        """A server that is prepared gets older weights, at the same time as a hand-over writes newer ones."""
        for folder in self._folder.glob(f"{WEIGHTS}-*"):
            if int(folder.name.rpartition("-")[2]) < number:
                shutil.rmtree(folder, ignore_errors=True)


class AdapterTransfer(FileTransfer):
    """A folder with the adapter alone for each hand-over, as `peft` stores it.

    Args:
        write: `components.policy.policy.Apart.write`.
    """

    def __init__(
        self, dtype: torch.dtype, timeout: float, folder: Path, write: Callable[[Mapping[str, Tensor], Path], None]
    ) -> None:
        super().__init__(dtype, timeout, folder)
        self._write_adapter = write

    def write(self, weights: Mapping[str, Tensor], folder: Path) -> Iterator[Path]:
        with os_errors("write", folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
        self._write_adapter(weights, folder)
        yield from folder.glob(f"*{SUFFIX}")

    async def send(self, client: ServerClient, bucket: File) -> None:
        await client.update({"adapter": str(bucket.path.parent)}, self._timeout)


def marked(items: Iterator[T]) -> Iterator[tuple[T, bool]]:
    """Every item, and whether it is the last."""
    try:
        present = next(items)
    except StopIteration:
        return
    for following in items:
        yield present, False
        present = following
    yield present, True


class BroadcastTransfer(Transfer[dict[str, Tensor]]):
    """A broadcast from this process, in a group of its own for each server, so that one that dies takes no other along.

    Over NCCL where the learner and the server are on GPUs, over gloo where not.
    """

    def __init__(self, dtype: torch.dtype, timeout: float, device: torch.device) -> None:
        super().__init__(dtype, timeout)
        self._device = device
        self._groups: dict[ServerClient, tuple[Any, Any]] = {}  # a group lives as long as its store

    def buckets(self, number: int, weights: Mapping[str, Tensor]) -> Iterator[dict[str, Tensor]]:
        return buckets(weights, self._dtype, self._device)

    async def open(self, client: ServerClient, facts: Facts) -> None:
        if not isinstance(client, VllmClient):
            raise TypeError("only vLLM takes weights by broadcast")
        backend = "nccl" if self._device.type == "cuda" and facts.device == "cuda" else "gloo"
        server = urlsplit(client.url)
        try:
            host = own_address(str(server.hostname), server.port or 80)
        except OSError as error:
            raise ServerFault(f"no address that {server.hostname} could reach this machine at: {error}") from error
        size, timeout = 1 + facts.world_size, timedelta(seconds=self._timeout)
        store = dist.TCPStore(host, 0, size, is_master=True, timeout=timeout, wait_for_workers=False)
        place = {"host": host, "port": store.port, "world_size": size}
        info = {**place, "backend": backend, "timeout": self._timeout}

        async def joined() -> Any:
            # A group cannot be left while it forms, so it is begun when all are there and not before.
            while not store.check([f"here-{rank}" for rank in range(1, size)]):
                await asyncio.sleep(POLL)
            return await in_a_thread(lambda: process_group(store, 0, size, backend, host, timeout))

        _, made = await both(client.init_transfer(info, self._timeout), asyncio.wait_for(joined(), self._timeout))
        self._groups = {known: value for known, value in self._groups.items() if known.name != client.name}
        self._groups[client] = (made, store)

    async def send(self, client: ServerClient, bucket: dict[str, Tensor]) -> None:
        made, _ = self._groups[client]
        device = self._device if "NCCL" in type(made).__name__ else torch.device("cpu")
        tensors = {name: tensor.to(device) for name, tensor in bucket.items()}
        info = {
            "names": list(tensors),
            "dtypes": [str(tensor.dtype).removeprefix("torch.") for tensor in tensors.values()],
            "shapes": [list(tensor.shape) for tensor in tensors.values()],
        }

        def send() -> None:
            for tensor in tensors.values():
                broadcast(made, tensor, timedelta(seconds=self._timeout))

        await both(client.update(info, self._timeout), in_a_thread(send))


async def both(started: Any, done: Any) -> tuple[Any, Any]:
    """What the server does and what is done here, at the same time; the first fault ends the wait.

    A thread of its own goes on until the limit of its process group, which nothing else can end (gloo, torch 2.13).
    """
    tasks = [asyncio.ensure_future(started), asyncio.ensure_future(done)]
    try:
        first, second = await gathered(tasks)
    except RuntimeError as error:  # torch.distributed: the peer is gone, or the time is up
        raise ServerFault(f"its process group broke: {str(error).splitlines()[0]}") from error
    except TimeoutError as error:
        raise ServerFault("it did not come to its process group") from error
    finally:
        for task in tasks:
            task.cancel()
    return first, second
