"""What a run needs at the least, from the headers of its checkpoint alone: what cannot fit is refused before it begins.

The need is a lower bound. Activations, logits and caches come on top of it, and what is refused here could never run.
Loads no torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from components.config import Settings
from components.config.kubernetes import KubernetesSettings, PodSettings
from components.config.policy import CheckpointModel
from components.config.quantities import size
from components.config.rollout import TorchEngine
from components.config.servers import VllmEngine
from components.errors import InputError
from components.processes.memory import ADAMW, BYTES, GIB, HOW, check_stages, parameters_in, weights_of_engine

FP32 = 4
GPU_MEMORY = "nvidia.com/gpu.memory"
"""The label by which NVIDIA's feature discovery states how many MiB a node's GPUs have."""


class Need(NamedTuple):
    """What one place has to hold at the least."""

    what: str
    needed: float
    there: float
    where: str


def check_run(settings: Settings, stages: Sequence[str]) -> None:
    """Refuse a run that has not begun, and of which a part cannot fit: a stage on this machine, or a pod of a cluster.
    A tiny model is made by the run itself, and small.

    Raises:
        InputError: with both figures, and the setting that helps most.
    """
    model = settings.policy.model
    if not isinstance(model, CheckpointModel):
        return
    check_stages(settings, stages, model.path, advice(settings))
    check_pods(settings, stages, model.path)


def check_pods(settings: Settings, stages: Sequence[str], folder: Path) -> None:
    """Refuse pods of which one cannot hold its share of the checkpoint in ``folder``.

    Raises:
        InputError: see `check_run`.
    """
    how = settings.launch.kubernetes
    if settings.launch.kind != "kubernetes" or how is None or "train" not in {*stages} & {*how.stages}:
        return
    parameters = parameters_in(folder)
    for need in pod_needs(settings, how, parameters):
        if need.needed > need.there:
            said = f"{need.what} needs at least {need.needed / GIB:.1f} GiB, and has {need.there / GIB:.1f} GiB"
            what = f"the model is larger than memory: {said} ({parameters:,} parameters)"
            raise InputError(what, where=need.where, how=f"{advice(settings)}; `evenkeel plan` shows every part")


def pod_needs(settings: Settings, how: KubernetesSettings, parameters: int) -> Iterator[Need]:
    """Of every role: its pod's memory, and where the nodes' label states how large they are, its GPUs'."""
    held, number = BYTES[settings.policy.dtype], parameters
    copies = (weights_of_engine(settings) if isinstance(settings.rollout.engine, TorchEngine) else 0) * number
    if settings.learner.kind == "torch":
        copies += (ADAMW if settings.policy.lora is None else 1) * held * number
    place, what = "launch.kubernetes.learner", "the first pod of the learner"
    if settings.learner.kind != "torch":
        rank = rank_state(settings, on_gpu=how.learner.gpus > 0) * number
        if how.learner.gpus:
            yield from _gpu("each GPU of the learner", rank, how.learner, place)
        else:
            copies += how.learner.processes * rank
            what += f", with {how.learner.processes} of its ranks,"
    yield Need(what, copies, size(how.learner.memory), f"{place}.memory")
    engine = settings.rollout.engine
    if isinstance(engine, VllmEngine):
        each = held if engine.dtype == "policy" else FP32 if engine.dtype == "float32" else 2
        place = "launch.kubernetes.rollout"
        if how.rollout.gpus:
            yield from _gpu("each GPU of a server", each * number / engine.tensor_parallel, how.rollout, place)
        else:
            needed = each * number + engine.cpu_cache_gib * GIB
            yield Need("a server's pod", needed, size(how.rollout.memory), f"{place}.memory")


def rank_state(settings: Settings, on_gpu: bool) -> float:
    """Bytes of one rank for each parameter: its share of the state, and with ZeRO 1 and 2 whole weights."""
    learner, zero = settings.learner, settings.learner.kind == "deepspeed"
    half = learner.compute_dtype == "bfloat16" or (on_gpu and learner.compute_dtype == "auto")
    weights = 2.0 if zero and half else FP32
    held = weights if zero and learner.zero.stage < 3 else 0.0
    if settings.policy.lora is not None:
        return held or weights / learner.ranks.processes
    return held + ADAMW * FP32 / learner.ranks.processes


def _gpu(what: str, needed: float, pods: PodSettings, place: str) -> Iterator[Need]:
    label = pods.node_selector.get(GPU_MEMORY, "")
    if label.isdigit():
        yield Need(what, needed, int(label) * 2**20, f"{place}.node_selector")


def advice(settings: Settings) -> str:
    """The setting that takes most off weights, gradients and moments, where one of them is left."""
    learner = settings.learner
    if settings.policy.lora is None:
        return "set policy.lora={rank: 16, alpha: 32}, which trains an adapter; or " + HOW
    if learner.kind == "deepspeed" and learner.zero.stage < 3:
        return "set learner.zero.stage=3; or " + HOW
    return HOW
