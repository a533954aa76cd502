"""What an engine of servers is made of, from its settings."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import safe_open

from components.config.servers import ServerEngine, VllmEngine
from components.directories import write_directory
from components.errors import InputError
from components.policy import Policy
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


def write_model(policy: Policy, folder: Path) -> None:
    """Write the policy for servers to start from, and see that its weights have the same names there.

    Raises:
        InputError: they have not, so that single weights could not be handed over by name (mixtures of experts).
    """
    write_directory(folder, policy.save)
    names: set[str] = set()
    for file in folder.glob("*.safetensors"):
        with safe_open(file, framework="pt") as tensors:
            names |= set(tensors.keys())
    if names != policy.weights().keys():
        odd = sorted(names ^ policy.weights().keys())
        raise InputError(
            f"weights of this model have other names in a checkpoint than in memory: {', '.join(odd[:3])}",
            where="rollout.engine",
            how="use rollout.engine.kind torch for mixtures of experts",
        )


def build_transfer(settings: ServerEngine, dtype: str, folder: Path, policy: Policy) -> Transfer:
    kind, timeout = getattr(torch, dtype), settings.sync_timeout
    if isinstance(settings, VllmEngine) and settings.transfer == "broadcast":
        return BroadcastTransfer(kind, timeout, policy.model.device)
    return FileTransfer(kind, timeout, folder)
