"""What an engine of servers is made of, from its settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from components.config.servers import ServerEngine, VllmEngine
from components.rollout.servers.client import ServerClient
from components.rollout.servers.local import Given, Origin, Started
from components.rollout.servers.sglang import SglangClient
from components.rollout.servers.transfer import BroadcastTransfer, FileTransfer, Transfer
from components.rollout.servers.vllm import VllmClient

CLIENTS: dict[str, type[ServerClient]] = {"vllm": VllmClient, "sglang": SglangClient}


def origins(settings: ServerEngine, model: Path, dtype: str, logs: Path) -> list[Origin]:
    """Where the servers come from."""
    if isinstance(settings, VllmEngine) and settings.processes:
        devices = settings.devices or (None,) * settings.processes
        return [Started(f"rollout-{i}", settings, model, dtype, logs, device) for i, device in enumerate(devices)]
    kind = CLIENTS[settings.kind]

    def given(name: str, url: str) -> Given:
        return Given(name, lambda: kind(name, url), settings)

    return [given(f"rollout-{i}", url) for i, url in enumerate(settings.urls)]


def build_transfer(settings: ServerEngine, dtype: str, folder: Path, device: torch.device) -> Transfer[Any]:
    """How weights travel; ``device`` is where they come from."""
    kind, timeout = getattr(torch, dtype), settings.sync_timeout
    if isinstance(settings, VllmEngine) and settings.transfer == "broadcast":
        return BroadcastTransfer(kind, timeout, device)
    return FileTransfer(kind, timeout, folder)
