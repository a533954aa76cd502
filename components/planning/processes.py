"""The processes of a run's training, and what each of them takes."""

from __future__ import annotations

from components.config import Settings
from components.config.servers import VllmEngine
from components.planning.held import learner_parts, loop_parts
from components.planning.passes import DTYPES, GIB, MOMENTS, Load, Part, Process
from components.planning.shapes import Shape

IMPORTED = 462e6
"""Bytes of Python and of what a learner imports, torch 2.13 for CPUs; measured."""
FIRST_USE = {"torch": 50e6, "fsdp2": 50e6, "deepspeed": 106e6}
"""Bytes of what libraries load and make when they first run, by ``learner.kind``; measured with a toy of a policy."""
CUDA = 0.5 * 2**30
"""Bytes that a CUDA context takes of a GPU. Not measured here."""
FOLLOWER = 18e6
"""Bytes of those that only rank 0 takes: it samples, too."""
SERVED = {**DTYPES, "float16": 2}
"""Bytes of a weight in a server, by its dtype."""
CACHED = {"fp8_e4m3": 1, "fp8_e5m2": 1}
"""Bytes of a number in a server's cache, where it has a dtype of its own."""
LEAST_TOKENS = 2048
"""Of the cache where neither the settings nor a GPU state how large it is."""


def processes_of(settings: Settings, shape: Shape, load: Load, gpu_memory: float | None = None) -> list[Process]:
    """Every kind of process, the one with the loop first.

    Args:
        gpu_memory: bytes of the GPU that each process of the learner has; None where they compute on CPUs.
    """
    on_gpu = gpu_memory is not None and learns_on_gpu(settings)
    settings = as_computed(settings, on_gpu)
    loop, learner = loop_parts(settings, shape, load, on_gpu), learner_parts(settings, shape, load, on_gpu)
    ranks, gpus = settings.learner.ranks.processes, int(on_gpu)
    leading = "loop and learner" if settings.learner.kind == "torch" else "rank 0"
    found = [Process(leading, 1, [*_libraries(settings, on_gpu), *learner, *loop], gpus)]
    if settings.learner.kind != "torch" and ranks > 1:
        name = "rank 1" if ranks == 2 else f"ranks 1 to {ranks - 1}"
        found.append(Process(name, ranks - 1, [*_libraries(settings, on_gpu, FOLLOWER), *learner], gpus))
    engine = settings.rollout.engine
    if isinstance(engine, VllmEngine):
        own = gpu_memory if serves_on_gpu(settings) else None
        parts = server_parts(settings, shape, own)
        count, gpus = max(len(engine.urls), engine.processes), engine.tensor_parallel if own else 0
        found.append(Process("server", count, parts, gpus))
    return found


def serves_on_gpu(settings: Settings) -> bool:
    """Whether servers take GPUs where there are any."""
    if settings.launch.kind == "kubernetes" and settings.launch.kubernetes is not None:
        return settings.launch.kubernetes.rollout.gpus > 0
    return True


def learns_on_gpu(settings: Settings) -> bool:
    """Whether the learner takes a GPU where there is one."""
    if settings.launch.kind == "kubernetes" and settings.launch.kubernetes is not None:
        return settings.launch.kubernetes.learner.gpus > 0
    return settings.device != "cpu"


def as_computed(settings: Settings, on_gpu: bool) -> Settings:
    """The settings with the precision that ``learner.compute_dtype`` auto stands for."""
    if settings.learner.compute_dtype != "auto" or not on_gpu:
        return settings
    learner = settings.learner.model_copy(update={"compute_dtype": "bfloat16"})
    return settings.model_copy(update={"learner": learner})


def _libraries(settings: Settings, on_gpu: bool = False, less: float = 0.0) -> list[Part]:
    size = IMPORTED + FIRST_USE[settings.learner.kind] - less
    found = [Part("libraries", size, "Python, torch and what it loads when it first runs", MOMENTS)]
    if on_gpu:
        found.append(Part("CUDA context", CUDA, "an estimate", MOMENTS, True))
    return found


def server_parts(settings: Settings, shape: Shape, gpu_memory: float | None) -> list[Part]:
    """The parts of one of a vLLM server's GPUs, or of a server on CPUs.

    Args:
        gpu_memory: bytes of a GPU; None where the server runs on CPUs.
    """
    engine = settings.rollout.engine
    assert isinstance(engine, VllmEngine)
    each = SERVED[settings.policy.dtype if engine.dtype == "policy" else engine.dtype]
    held = each * shape.parameters / engine.tensor_parallel
    share = f"1/{engine.tensor_parallel} of all" if engine.tensor_parallel > 1 else "all of them"
    weights = Part("weights", held, f"{each} bytes each, {share}", MOMENTS, gpu_memory is not None)
    if gpu_memory is None:
        return [weights, Part("cache", engine.cpu_cache_gib * GIB, "rollout.engine.cpu_cache_gib", MOMENTS)]
    number = CACHED.get(engine.kv_cache_dtype, each)  # bytes of each of a token's keys and values
    token = 2 * number * shape.layers * shape.kv_heads * shape.head_dim / engine.tensor_parallel
    tokens = engine.max_model_len or LEAST_TOKENS
    rest = engine.gpu_memory * gpu_memory - held
    why = f"what is left of rollout.engine.gpu_memory ({engine.gpu_memory:g}); {tokens:,} tokens at least"
    return [weights, Part("cache", max(rest, tokens * token), why, MOMENTS, True)]
