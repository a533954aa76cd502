"""Where servers come from, given by URL or processes that the run starts, and what they begin with."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import torch

from components.config.servers import ServerEngine, VllmEngine
from components.errors import InputError
from components.policy.policy import Apart, Policy
from components.policy.stored import Stored
from components.policy.weights import Weights
from components.policy.writing import write_policy
from components.processes import Child, free_port, vllm_python
from components.processes.vllm_server import Adapter, command_line, environment
from components.rollout.servers.client import ServerClient, ServerFault
from components.rollout.servers.sglang import SglangClient
from components.rollout.servers.transfer import AdapterTransfer, BroadcastTransfer, FileTransfer, Transfer
from components.rollout.servers.vllm import ADAPTER, VllmClient

PLUGIN = Path(__file__).parent / "plugin"
POLL = 0.5
"""Seconds between two looks at a server that is starting."""
PORTS = 5
"""Ports that are tried, where others take them away."""
GLANCE = 5.0
"""Seconds that a server that is starting may take to say that it is up."""
FOLDER = "adapter"
"""Of the folder that servers begin with: the adapter, where it is not merged."""
CLIENTS: dict[str, type[ServerClient]] = {"vllm": VllmClient, "sglang": SglangClient}


class Origin(ABC):
    """Where one server comes from, and where another comes from when that one is bad."""

    name: str

    def may_open(self) -> bool:
        """Whether it may be opened (again)."""
        return True

    @abstractmethod
    async def open(self) -> ServerClient:
        """A client of a server that answers; waits for it. A `ServerFault` states why there is none."""

    def alive(self) -> bool:
        """False where it is known to be gone."""
        return True

    async def close(self) -> None:  # noqa: B027 - what was not started is not ended
        """End what was started."""


class Given(Origin):
    """A server that others run. A bad one is waited for."""

    def __init__(self, name: str, url: str, kind: type[ServerClient], settings: ServerEngine) -> None:
        self.name, self._url, self._kind, self._timeout = name, url, kind, settings.start_timeout

    async def open(self) -> ServerClient:
        client = self._kind(self.name, self._url)
        give_up = time.monotonic() + self._timeout
        while True:
            try:
                await client.ready(GLANCE)
                return client
            except ServerFault:
                if time.monotonic() > give_up:
                    await client.aclose()
                    raise
            await asyncio.sleep(POLL)


class Started(Origin):
    """A vLLM server in a process of its own, replaced by a new process when it is bad."""

    def __init__(
        self,
        name: str,
        settings: VllmEngine,
        model: Path,
        dtype: str,
        logs: Path,
        device: str | None,
        adapter: Adapter | None,
    ) -> None:
        self.name, self._settings, self._model, self._dtype = name, settings, model, dtype
        self._adapter = adapter
        self._log, self._device, self._starts = logs / f"{name}.log", device, 0
        self._python = vllm_python(settings.python)
        self.child: Child | None = None

    def may_open(self) -> bool:
        return self._starts <= self._settings.restarts

    def alive(self) -> bool:
        return self.child is not None and self.child.alive

    async def open(self) -> ServerClient:
        self._starts += 1
        for _ in range(PORTS):
            await self.close()
            client = await self._start(free_port())
            if client is not None:
                return client
        raise ServerFault(f"{PORTS} ports in turn were taken away by other processes; see {self._log}")

    async def close(self) -> None:
        if self.child is not None:
            await asyncio.to_thread(self.child.stop)

    async def _start(self, port: int) -> ServerClient | None:
        """The server on this port, or None where another process has taken it."""
        served = f"evenkeel-{secrets.token_hex(4)}"  # so that no other server on the port is taken for it
        begin = self._log.stat().st_size if self._log.exists() else 0
        command = command_line(
            self._python,
            self._settings,
            self._model,
            self._dtype,
            host="127.0.0.1",
            port=port,
            served=served,
            gpu=torch.cuda.is_available(),
            adapter=self._adapter,
        )
        self.child = Child(self.name, command, log=self._log, env=self._environment())
        client = VllmClient(self.name, f"http://127.0.0.1:{port}", served)
        give_up = time.monotonic() + self._settings.start_timeout
        while self.child.alive:
            try:
                await client.ready(GLANCE)
                return client
            except (ServerFault, InputError) as fault:  # a 4xx: another process has the port
                if time.monotonic() > give_up:
                    await client.aclose()
                    raise ServerFault(f"not up after {self._settings.start_timeout:g} s: {fault}") from fault
            await asyncio.sleep(POLL)
        await client.aclose()
        if "address already in use" in self._log.read_bytes()[begin:].decode(errors="replace").lower():
            return None
        raise ServerFault(self.child.ending())

    def _environment(self) -> dict[str, str]:
        paths = [str(PLUGIN), *filter(None, [os.environ.get("PYTHONPATH")])]
        threads = os.environ.get("OMP_NUM_THREADS", "1")
        found = {
            "PYTHONPATH": os.pathsep.join(paths),
            "VLLM_API_KEY": "",  # the run's requests bring no key
            **environment(self._settings, threads, gpu=torch.cuda.is_available()),
        }
        return found if self._device is None else {**found, "CUDA_VISIBLE_DEVICES": self._device}


def origins(settings: ServerEngine, model: Path, dtype: str, logs: Path, apart: Apart | None) -> list[Origin]:
    """Where the servers come from: they begin with the folder ``model``, and an adapter in it where it is ``apart``."""
    if isinstance(settings, VllmEngine) and settings.processes:
        devices = settings.devices or (None,) * settings.processes
        adapter = None if apart is None else Adapter(ADAPTER, model / FOLDER, apart.rank, apart.targets)
        return [
            Started(f"rollout-{i}", settings, model, dtype, logs, device, adapter) for i, device in enumerate(devices)
        ]
    return [Given(f"rollout-{i}", url, CLIENTS[settings.kind], settings) for i, url in enumerate(settings.urls)]


def build_transfer(
    settings: ServerEngine, dtype: str, folder: Path, device: torch.device, apart: Apart | None
) -> Transfer[Any]:
    """How weights travel; ``device`` is where they come from, and ``apart`` where the adapter goes alone."""
    kind, timeout = getattr(torch, dtype), settings.sync_timeout
    if apart is not None:
        return AdapterTransfer(kind, timeout, folder, apart.write)
    if isinstance(settings, VllmEngine) and settings.transfer == "broadcast":
        return BroadcastTransfer(kind, timeout, device)
    return FileTransfer(kind, timeout, folder)


def stored(model: Path, apart: Apart | None) -> Stored:
    """What travels of the weights that `write_start` wrote."""
    return Stored.folder(model if apart is None else model / FOLDER)


def write_start(policy: Policy, present: Weights, apart: Apart | None, folder: Path) -> None:
    """Write what servers begin with: the checkpoint of the present weights, or the base and its adapter."""
    write_policy(policy, present if apart is None else apart.base, folder)
    if apart is not None:
        apart.write(apart.learned, folder / FOLDER)
