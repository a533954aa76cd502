"""What an engine of servers is made of, from its settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from components.config.servers import ServerEngine, VllmEngine
from components.policy.policy import Apart, Policy
from components.policy.stored import Stored
from components.policy.weights import Weights
from components.policy.writing import write_policy
from components.processes.vllm_server import Adapter
from components.rollout.servers.client import ServerClient
from components.rollout.servers.local import Given, Origin, Started
from components.rollout.servers.sglang import SglangClient
from components.rollout.servers.transfer import AdapterTransfer, BroadcastTransfer, FileTransfer, Transfer
from components.rollout.servers.vllm import ADAPTER, VllmClient

FOLDER = "adapter"
"""Of the folder that servers begin with: the adapter, where it is not merged."""
CLIENTS: dict[str, type[ServerClient]] = {"vllm": VllmClient, "sglang": SglangClient}


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
