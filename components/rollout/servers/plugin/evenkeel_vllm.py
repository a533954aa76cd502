"""What the run adds to a vLLM server: facts about its model, and three ways for weights to come in.

This file is imported by the server, in vLLM's environment, where nothing else of the project is: it may use torch,
safetensors and vLLM only. The server loads it by ``--worker-extension-cls evenkeel_vllm.Extension`` with this
folder on its PYTHONPATH, and of the way by ``--weight-transfer-config``. vLLM's own backends need GPUs; these do not.

- ``evenkeel_files``: the update names a safetensors file that the server can read
- ``evenkeel_adapter``: the update brings an adapter, in a folder that the server can read; the base stays
- ``evenkeel_broadcast``: the update names tensors, and they come by broadcast from rank 0 of a process group

Written for vLLM 0.32.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from evenkeel_groups import broadcast, own_address, process_group  # next to this file, where the server looks
from safetensors import safe_open
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.lora.request import LoRARequest
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload
from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info
from vllm.platforms import current_platform

SHAPE = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")


class Extension:
    """Mixed into vLLM's worker."""

    vllm_config: Any
    model_runner: Any

    def evenkeel_facts(self) -> dict[str, Any]:
        """What a run has to know of the model before it trusts the server."""
        model = self.vllm_config.model_config
        config = model.hf_text_config
        transfer = self.vllm_config.weight_transfer_config
        return {
            "model_type": config.model_type,
            "shape": {name: getattr(config, name, None) for name in SHAPE},
            "tied": bool(getattr(config, "tie_word_embeddings", False)),
            "dtype": str(model.dtype).removeprefix("torch."),
            "kv_cache_dtype": str(self.vllm_config.cache_config.cache_dtype),
            "max_model_len": model.max_model_len,
            "max_num_seqs": self.vllm_config.scheduler_config.max_num_seqs,
            "logprobs_mode": str(getattr(model.logprobs_mode, "value", model.logprobs_mode)),
            "transfer": None if transfer is None else transfer.backend,
            "world_size": self.vllm_config.parallel_config.world_size,
            "device": current_platform.device_type,
        }

    def evenkeel_adapter(self, name: str, path: str) -> None:
        """Put the adapter of a folder in the place of the one that the server was started with."""
        adapter = LoRARequest(lora_name=name, lora_int_id=1, lora_path=path, load_inplace=True)
        if not self.model_runner.lora_manager.add_adapter(adapter):
            raise RuntimeError(f"the adapter in {path} was not loaded")


class CheckpointEngine(WeightTransferEngine):
    """Weights in the checkpoint's names and shapes, loaded layer by layer."""

    def start_weight_update(self) -> None:
        if any(get_layerwise_info(layer).can_load() for layer in self.model.modules()):
            # An update broke off. A layer that it had completed would take no weight of this one in.
            finalize_layerwise_reload(self.model, self.model_config)
        initialize_layerwise_reload(self.model)

    def update_weights(self, update_info: dict[str, Any]) -> None:
        self.receive_weights(self.parse_update_info(update_info))
        if not current_platform.is_cpu():
            torch.accelerator.synchronize()

    def finish_weight_update(self) -> None:
        finalize_layerwise_reload(self.model, self.model_config)
        repack_tied_head(self.model)

    def shutdown(self) -> None:
        pass


def repack_tied_head(model: torch.nn.Module) -> None:
    """On CPUs a tied output layer keeps a packed copy of the embedding that a reload does not renew; rebuild it."""
    if not current_platform.is_cpu():
        return
    from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm

    for module in model.modules():
        weight = getattr(module, "weight", None)
        if hasattr(module, "cpu_linear") and weight is not None and weight.numel():
            dispatch_cpu_unquantized_gemm(module, remove_weight=False)


@dataclass
class NoInit(WeightTransferInitInfo):
    """Nothing to agree on beforehand."""


@dataclass
class FileUpdate(WeightTransferUpdateInfo):
    """A safetensors file that holds all weights."""

    path: str


class FileEngine(CheckpointEngine):
    """Weights from a file."""

    init_info_cls, update_info_cls = NoInit, FileUpdate

    def init_transfer_engine(self, init_info: NoInit) -> None:
        pass

    def receive_weights(self, update_info: FileUpdate) -> None:
        with safe_open(update_info.path, framework="pt") as file:
            self.model.load_weights((name, file.get_tensor(name)) for name in file.keys())  # noqa: SIM118


class AdapterEngine(FileEngine):
    """No weights: an update begins and ends, and has a label; `Extension.evenkeel_adapter` loads the adapter.

    vLLM's own route for that (`/v1/load_lora_adapter` in place) reads the folder again for every batch.
    """

    def start_weight_update(self) -> None:
        pass

    def receive_weights(self, update_info: FileUpdate) -> None:
        raise RuntimeError("this server takes an adapter alone")

    def finish_weight_update(self) -> None:
        pass


@dataclass
class Group(WeightTransferInitInfo):
    """The process group: the run is rank 0 and holds the store at ``host``:``port``, this server's workers follow."""

    host: str
    port: int
    world_size: int
    backend: str  # gloo or nccl
    timeout: float  # seconds


@dataclass
class Announced(WeightTransferUpdateInfo):
    """The tensors that come next, in order."""

    names: list[str]
    dtypes: list[str]
    shapes: list[list[int]]


class BroadcastEngine(CheckpointEngine):
    """Weights from the run's memory."""

    init_info_cls, update_info_cls = Group, Announced
    _group: Any = None
    _device = torch.device("cpu")
    _timeout = timedelta(0)

    def init_transfer_engine(self, init_info: Group) -> None:
        self.shutdown()
        rank = 1 + self.parallel_config.rank
        self._timeout = timedelta(seconds=init_info.timeout)
        self._group = join(init_info, rank)
        self._device = self.device if init_info.backend == "nccl" else torch.device("cpu")

    def receive_weights(self, update_info: Announced) -> None:
        if self._group is None:
            raise RuntimeError("no process group: init_weight_transfer_engine comes first")
        self.model.load_weights(self._received(update_info))

    def _received(self, announced: Announced) -> Iterator[tuple[str, torch.Tensor]]:
        for name, dtype, shape in zip(announced.names, announced.dtypes, announced.shapes, strict=True):
            tensor = torch.empty(shape, dtype=getattr(torch, dtype), device=self._device)
            broadcast(self._group, tensor, self._timeout)
            yield name, tensor

    def shutdown(self) -> None:
        self._group = None


def join(group: Group, rank: int) -> Any:
    """The process group as this rank sees it; apart from whatever groups the server has of its own."""
    timeout = timedelta(seconds=group.timeout)
    store = dist.TCPStore(group.host, group.port, group.world_size, is_master=False, timeout=timeout)
    store.set(f"here-{rank}", "")  # what the run waits for before it begins the group
    host = "" if group.backend == "nccl" else own_address(group.host, group.port)
    return process_group(store, rank, group.world_size, group.backend, host, timeout)


ENGINES = {
    "evenkeel_files": FileEngine,
    "evenkeel_broadcast": BroadcastEngine,
    "evenkeel_adapter": AdapterEngine,
}
for name, engine in ENGINES.items():
    if name not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine(name, engine)
