"""How weights get from the run into a server."""

from __future__ import annotations

import asyncio
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import Tensor

from components.directories import write_directory
from components.rollout.servers.background import in_a_thread
from components.rollout.servers.client import Facts, ServerClient, ServerFault
from components.rollout.servers.plugin.evenkeel_address import own_address
from components.rollout.servers.vllm import VllmClient

FILE = "model.safetensors"
POLL = 0.01
"""Seconds between two looks whether a server has come to its process group."""
c10d: Any = dist  # process groups apart from the global one have no type information


class Transfer(ABC):
    """Weights of one hand-over after the other. ``weights`` are the same at every call of one hand-over."""

    def __init__(self, dtype: torch.dtype, timeout: float) -> None:
        self._dtype, self._timeout = dtype, timeout

    @abstractmethod
    def publish(self, number: int, weights: Mapping[str, Tensor]) -> None:
        """Make the weights of a hand-over ready, once for all servers."""

    async def open(self, client: ServerClient, facts: Facts) -> None:  # noqa: B027 - files need no introduction
        """Get to know a server that has just been opened."""

    @abstractmethod
    async def send(self, client: ServerClient, weights: Mapping[str, Tensor]) -> None:
        """Let a server that holds still take the weights in."""

    def close(self) -> None:  # noqa: B027 - a broadcast leaves nothing behind
        """Remove what was written for servers."""


class FileTransfer(Transfer):
    """A safetensors file, whole before any server hears of it; the one before it goes when the next is there."""

    def __init__(self, dtype: torch.dtype, timeout: float, folder: Path) -> None:
        super().__init__(dtype, timeout)
        self._folder, self._present = folder.absolute(), folder

    def publish(self, number: int, weights: Mapping[str, Tensor]) -> None:
        tensors = {name: tensor.detach().to("cpu", self._dtype).contiguous() for name, tensor in weights.items()}
        target = self._folder / f"weights-{number}"
        write_directory(target, lambda staging: save_file(tensors, staging / FILE, metadata={"format": "pt"}))
        self._remove(but=target)
        self._present = target

    async def send(self, client: ServerClient, weights: Mapping[str, Tensor]) -> None:
        await client.update({"path": str(self._present / FILE)}, self._timeout)

    def close(self) -> None:
        self._remove()

    def _remove(self, but: Path | None = None) -> None:
        for older in self._folder.glob("weights-*"):
            if older != but:
                shutil.rmtree(older, ignore_errors=True)


class BroadcastTransfer(Transfer):
    """A broadcast from this process, in a group of its own for each server, so that one that dies takes no other along.

    Over NCCL where the weights and the server are on GPUs, over gloo where not.
    """

    def __init__(self, dtype: torch.dtype, timeout: float, device: torch.device) -> None:
        super().__init__(dtype, timeout)
        self._device = device
        self._groups: dict[ServerClient, tuple[Any, Any]] = {}  # a group lives as long as its store

    def publish(self, number: int, weights: Mapping[str, Tensor]) -> None:
        pass

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
        store = c10d.TCPStore(host, 0, size, is_master=True, timeout=timeout, wait_for_workers=False)
        info = {
            "host": host,
            "port": store.port,
            "world_size": size,
            "backend": backend,
            "timeout": self._timeout,
        }

        async def joined() -> Any:
            # A group cannot be left while it forms, so it is begun when all are there and not before.
            while not store.check([f"here-{rank}" for rank in range(1, size)]):
                await asyncio.sleep(POLL)
            return await in_a_thread(lambda: group(store, size, backend, host, timeout))

        _, made = await both(client.init_transfer(info, self._timeout), asyncio.wait_for(joined(), self._timeout))
        self._groups = {known: value for known, value in self._groups.items() if known.name != client.name}
        self._groups[client] = (made, store)

    async def send(self, client: ServerClient, weights: Mapping[str, Tensor]) -> None:
        made, _ = self._groups[client]
        device = self._device if "NCCL" in type(made).__name__ else torch.device("cpu")
        tensors = {name: tensor.detach().to(device, self._dtype).contiguous() for name, tensor in weights.items()}
        info = {
            "names": list(tensors),
            "dtypes": [str(tensor.dtype).removeprefix("torch.") for tensor in tensors.values()],
            "shapes": [list(tensor.shape) for tensor in tensors.values()],
        }
        sent = in_a_thread(lambda: self._broadcast(made, list(tensors.values())))
        await both(client.update(info, self._timeout), sent)

    def _broadcast(self, made: Any, tensors: list[Tensor]) -> None:
        """Send tensors one after the other from rank 0. Waiting with a limit blocks over NCCL too."""
        for tensor in tensors:
            options = dist.BroadcastOptions()
            options.rootRank = 0
            made.broadcast([tensor], options).wait(timedelta(seconds=self._timeout))


def group(store: Any, size: int, backend: str, host: str, timeout: timedelta) -> Any:
    """The process group as its rank 0 sees it, apart from any group that the learner has."""
    if backend == "nccl":
        options = c10d.ProcessGroupNCCL.Options()
        options._timeout = timeout
        return c10d.ProcessGroupNCCL(store, 0, size, options)
    options = c10d.ProcessGroupGloo._Options()
    options._timeout = timeout
    options._devices = [c10d.ProcessGroupGloo.create_device(hostname=host)]
    return c10d.ProcessGroupGloo(store, 0, size, options)


async def both(asked: Any, done: Any) -> tuple[Any, Any]:
    """What the server does and what is done here, at the same time; the first fault ends the wait.

    A thread of its own goes on until the limit of its process group, which nothing else can end (gloo, torch 2.13).
    """
    tasks = [asyncio.ensure_future(asked), asyncio.ensure_future(done)]
    try:
        first, second = await asyncio.gather(*tasks)
    except RuntimeError as error:  # torch.distributed: the peer is gone, or the time is up
        raise ServerFault(f"its process group broke: {str(error).splitlines()[0]}") from error
    except TimeoutError as error:
        raise ServerFault("it did not come to its process group") from error
    finally:
        for task in tasks:
            task.cancel()
    return first, second
