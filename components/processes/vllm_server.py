"""How a vLLM server that fits a run is started, on this machine or in a pod."""

from __future__ import annotations

import json
from pathlib import Path, PurePath
from typing import NamedTuple

from components.config.servers import VllmEngine

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The largest ranks of an adapter that vLLM 0.32 can be started for."""
PLUGIN = Path("components/rollout/servers/plugin")
"""What a server imports, below the folder that holds `components`."""


class Adapter(NamedTuple):
    """A low-rank adapter, by the name that requests have for it, as `peft` stores one."""

    name: str
    folder: PurePath
    rank: int
    targets: tuple[str, ...]


def command_line(
    python: PurePath | str,
    engine: VllmEngine,
    model: PurePath,
    dtype: str,
    *,
    host: str,
    port: int,
    served: str,
    gpu: bool,
    adapter: Adapter | None = None,
) -> list[str]:
    """What starts a server that fits: `python -m`, because the console script of CPU builds does not start.

    Args:
        model: The checkpoint that it begins with.
        served: The name it says it serves.
        gpu: Whether it will have one.
        adapter: What it computes next to that checkpoint, for ``transfer: adapter``.
    """
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server"]
    options = {
        "--model": str(model),
        "--served-model-name": served,
        "--host": host,
        "--port": str(port),
        "--dtype": dtype,
        "--kv-cache-dtype": engine.kv_cache_dtype,
        "--logprobs-mode": "processed_logprobs",  # of the distribution that is sampled from
        "--generation-config": "vllm",  # nothing of the model's own defaults
        "--worker-extension-cls": "evenkeel_vllm.Extension",
        "--weight-transfer-config": json.dumps({"backend": f"evenkeel_{engine.transfer}"}),
        "--seed": "0",
        "--tensor-parallel-size": str(engine.tensor_parallel),
        "--gpu-memory-utilization": f"{engine.gpu_memory:g}",
        "--max-model-len": None if engine.max_model_len is None else str(engine.max_model_len),
        "--max-num-seqs": None if engine.max_num_seqs is None else str(engine.max_num_seqs),
    }
    for name, value in options.items():
        command += [] if value is None else [name, value]
    if not gpu:
        # On CPUs vLLM cannot rewind a seeded generator, which it does after half of a prompt: its engine would die.
        command.append("--no-enable-chunked-prefill")
    command += ["--enable-sleep-mode"] if engine.sleep else []
    if adapter is not None:
        rank = min(rank for rank in RANKS if rank >= adapter.rank)
        command += ["--enable-lora", "--max-loras", "1", "--max-lora-rank", str(rank)]
        command += ["--lora-modules", f"{adapter.name}={adapter.folder}"]
        # Without it the output layer gets one too, which vLLM 0.32 on a CPU cannot compute for log-probabilities of a
        # prompt while others are sampled: its engine would die.
        command += ["--lora-target-modules", *adapter.targets]
    return [*command, "--enable-scale-out", *(["--enforce-eager"] if engine.eager else [])]


def environment(engine: VllmEngine, threads: str, *, gpu: bool) -> dict[str, str]:
    """Variables that it needs. Its interface for weights knows no passwords: only the run may reach the address."""
    # vLLM compiles single functions even when configured not to compile the model, which takes a C++ compiler.
    uncompiled = {"TORCH_COMPILE_DISABLE": "1"} if engine.eager and not gpu else {}
    return {
        **uncompiled,
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_CPU_KVCACHE_SPACE": str(engine.cpu_cache_gib),
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": threads,
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
