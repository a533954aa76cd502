"""What one inference server takes."""

from __future__ import annotations

from components.config import Settings
from components.config.servers import VllmEngine
from components.planning.parts import GIB, MOMENTS, Part
from components.planning.passes import DTYPES, FP32
from components.planning.shapes import Shape

BYTES = {**DTYPES, "float16": 2}
CACHED = {"fp8_e4m3": 1, "fp8_e5m2": 1}
LEAST_TOKENS = 2048
"""Of the cache where neither the settings nor a GPU state how large it is."""


def server_parts(settings: Settings, shape: Shape, gpu_memory: float | None) -> list[Part]:
    """The parts of one of a vLLM server's GPUs, or of a server on CPUs.

    Args:
        gpu_memory: bytes of a GPU; None where the server runs on CPUs.
    """
    engine = settings.rollout.engine
    assert isinstance(engine, VllmEngine)
    each = BYTES[settings.policy.dtype if engine.dtype == "policy" else engine.dtype]
    held = each * shape.parameters / engine.tensor_parallel
    share = f"1/{engine.tensor_parallel} of all" if engine.tensor_parallel > 1 else "all of them"
    weights = Part("weights", held, f"{each} bytes each, {share}", MOMENTS, gpu_memory is not None)
    if gpu_memory is None:
        return [weights, Part("cache", engine.cpu_cache_gib * GIB, "rollout.engine.cpu_cache_gib", MOMENTS)]
    token = token_bytes(shape, CACHED.get(engine.kv_cache_dtype, each)) / engine.tensor_parallel
    tokens = engine.max_model_len or LEAST_TOKENS
    rest = engine.gpu_memory * gpu_memory - held
    why = f"what is left of rollout.engine.gpu_memory ({engine.gpu_memory:g}); {tokens:,} tokens at least"
    return [weights, Part("cache", max(rest, tokens * token), why, MOMENTS, True)]


def token_bytes(shape: Shape, number: int = FP32) -> float:
    """Bytes of the keys and values of one token."""
    return 2 * number * shape.layers * shape.kv_heads * shape.head_dim
