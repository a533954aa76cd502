"""How much memory a stage needs for its weights at least, and how much there is: a policy that is too large is refused
before it is loaded.

The need is a lower bound: weights, gradients and moments of the optimizer, and copies that are always made.
Activations, logits and caches come on top of it.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from operator import index
from pathlib import Path

import psutil

from components.config import Settings
from components.config.rollout import TorchEngine
from components.config.servers import ServerEngine, VllmEngine
from components.errors import InputError
from components.files import read_text
from components.opening import open_regular
from components.processes.ranked import is_ranked

GIB = 2**30
BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "int8": 1.0}
MALFORMED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error)
"""What reading a header that is none may raise."""
MOST_HEADER = 100_000_000
"""Bytes of a header; the library that loads weights takes no longer one."""
ADAMW = 4
"""Weights, gradients and two moments, in multiples of the weights."""
MERGED = 3
"""The base, its merged weights and the model that is saved."""
HOW = "set policy.dtype=bfloat16, take a smaller model or a larger machine, or end what else takes memory"


def available() -> int:
    """Bytes that this process can still get: of the machine, and of every control group that it is in."""
    return max(0, min([int(psutil.virtual_memory().available), *rooms()]))


def rooms(groups: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """What is left of each limit of a control group, versions 1 and 2; file cache that can be dropped is left, too."""
    lines = groups.read_text(encoding="utf-8").splitlines() if groups.exists() else []
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if controllers == "":
            top, limit, used, cache = mount, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            top, cache = mount / "memory", "total_inactive_file"
            limit, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        inner = top / path.lstrip("/")
        for folder in (inner, *inner.parents):
            if folder.is_relative_to(top) and (most := _number(folder / limit)) is not None:
                yield most - (_number(folder / used) or 0) + _number_of(folder / "memory.stat", cache)


def _number(file: Path) -> int | None:
    """None where there is no such file, or no limit in it (``max``)."""
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _number_of(file: Path, name: str) -> int:
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0)


def parameters_in(folder: Path) -> int:
    """Weights of a checkpoint folder; see `tensor_sizes`."""
    return sum(tensor_sizes(folder).values())


def tensor_sizes(folder: Path) -> dict[str, int]:
    """Name -> number of weights, from the headers of a checkpoint's safetensors; no weight is read.

    Of what is no checkpoint nothing is found: the stage that loads it raises the error.
    """
    whole, listed = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        return _in_file(whole)
    try:
        names = set(json.loads(read_text(listed))["weight_map"].values())
        files = [folder / name for name in sorted(names)]
    except (*MALFORMED, InputError):
        files = sorted(folder.glob("*.safetensors"))
    return {name: size for file in files for name, size in _in_file(file).items()}


def _in_file(file: Path) -> dict[str, int]:
    try:
        with open_regular(file) as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            header = json.loads(stream.read(length)) if length <= MOST_HEADER else {}
        sizes = ((name, map(index, entry["shape"])) for name, entry in header.items() if name != "__metadata__")
        return {name: prod(sides) for name, sides in sizes}
    except (*MALFORMED, InputError):
        return {}


def _weights(settings: Settings) -> float:
    """Bytes for each parameter of the policy."""
    return BYTES[settings.policy.dtype]


def weights_of_engine(settings: Settings) -> float:
    """Of the copy that samples, which may be held at another precision; int4 weights lie unpacked."""
    engine = settings.rollout.engine
    if isinstance(engine, ServerEngine):
        return BYTES.get(engine.dtype, _weights(settings)) * _served_here(settings, engine)
    if isinstance(engine, TorchEngine) and engine.precision in BYTES:
        return BYTES[engine.precision]
    if isinstance(engine, TorchEngine) and engine.precision == "auto" and gpu_for(settings) is not None:
        return BYTES["bfloat16"]
    return _weights(settings)


def _served_here(settings: Settings, engine: ServerEngine) -> float:
    """Copies of the weights that servers hold in the memory of this process, be that the machine's or a GPU's. Servers
    that run already are not counted: they are elsewhere, or what they hold is not free any more."""
    if not isinstance(engine, VllmEngine) or engine.urls:
        return 0
    if not has_gpus():
        return engine.processes
    if gpu_for(settings) is None:
        return 0
    own = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    named = ",".join(engine.devices).replace(" ", "").split(",")
    return (named.count(own) if engine.devices else engine.processes) / engine.tensor_parallel


def _trained(settings: Settings) -> float:
    """Of a policy that one process trains; with an adapter of some per cent the most are the copies of a save."""
    return _weights(settings) * (ADAMW if settings.policy.lora is None else MERGED)


def _supervised(settings: Settings) -> float:
    """Of the learner of stages sft and dpo."""
    return _trained(settings) if _in_one_process(settings) else _learner(settings)


def _compared(settings: Settings) -> float:
    """Of the same with the reference of stage dpo, which is a copy in one process that trains all weights."""
    copied = _in_one_process(settings) and settings.policy.lora is None
    return _supervised(settings) + (_weights(settings) if copied else 0)


def _in_one_process(settings: Settings) -> bool:
    """Whether stages sft and dpo have one process, as `components.learner.supervised_leader.builder_of` decides."""
    return settings.learner.kind == "torch" or settings.launch.kind == "kubernetes"


def _learner(settings: Settings) -> float:
    """Of the learner, with those of its ranks whose memory is this machine's; they compute with fp32 weights."""
    if settings.learner.kind == "torch":
        return _trained(settings)
    if settings.policy.lora is not None:
        return _trained(settings) + BYTES["float32"] * ranks_here()
    return _weights(settings) + BYTES["float32"] * ADAMW * ranks_here()


def _loop(settings: Settings) -> float:
    """Of stage train; a server that sleeps holds nothing while the learner updates, which takes most."""
    engine = settings.rollout.engine
    sleeps = isinstance(engine, VllmEngine) and engine.sleep
    return _learner(settings) + (0 if sleeps else weights_of_engine(settings))


def ranks_here(environment: Mapping[str, str] = os.environ) -> float:
    """The share of a learner's ranks whose weights are in the memory of this machine: none where they have GPUs, and of
    those of several machines the ones of this."""
    if has_gpus():
        return 0.0
    if not is_ranked(environment):
        return 1.0
    return int(environment["LOCAL_WORLD_SIZE"]) / int(environment["WORLD_SIZE"])


@cache
def has_gpus() -> bool:
    """Whether this machine has an NVIDIA GPU, without loading torch."""
    return any(Path("/dev").glob("nvidia[0-9]*"))


@cache
def gpu_memory() -> int | None:
    """Bytes of the smallest GPU of this machine; None where there is none, or NVIDIA's tool does not say."""
    if not has_gpus():
        return None
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return min((int(line) * 2**20 for line in said.split() if line.isdigit()), default=None)


def gpu_for(settings: Settings) -> int | None:
    """Bytes of the GPU that a stage of one process computes on; None where it is the CPU."""
    alone = settings.launch.kind == "inline" and settings.device != "cpu"
    return gpu_memory() if alone else None


NEEDS: dict[str, Callable[[Settings], float]] = {
    "sft": lambda s: _supervised(s) if s.sft.steps else _weights(s),
    "admission": lambda s: _weights(s) + weights_of_engine(s),
    "triage": lambda s: _weights(s) + weights_of_engine(s),
    "clusters": _weights,
    "train": _loop,
    "evaluate": lambda s: _weights(s) + weights_of_engine(s),
    "dpo": _compared,
}
"""Bytes for each parameter that a stage holds at the same time in its own process; other stages load no policy."""


def largest_need(settings: Settings, stages: Sequence[str], parameters: int) -> tuple[str, float]:
    """The stage that needs most on this machine, and how many bytes; an empty name where none loads a policy here."""
    launch = settings.launch
    elsewhere = launch.kubernetes.stages if launch.kind == "kubernetes" and launch.kubernetes else ()
    needs = {
        stage: NEEDS[stage](settings) * parameters for stage in stages if stage in NEEDS and stage not in elsewhere
    }
    return max(needs.items(), key=lambda item: item[1], default=("", 0.0))


def check_stages(settings: Settings, stages: Sequence[str], folder: Path, how: str = HOW) -> None:
    """Refuse to start stages of which one needs more memory than there is, for the checkpoint in ``folder``.

    Raises:
        InputError: with both figures, for the stage that needs most.
    """
    parameters = parameters_in(folder)
    stage, needed = largest_need(settings, stages, parameters)
    check_room(f"stage {stage}", needed, f"{parameters:,} parameters", folder, how, gpu_for(settings))


def check_weights(folder: Path, dtype: str) -> None:
    """Refuse to load weights that memory cannot hold.

    Raises:
        InputError: with both figures.
    """
    parameters = parameters_in(folder)
    check_room(f"loading it in {dtype}", parameters * BYTES[dtype], f"{parameters:,} parameters", folder)


def check_room(what: str, needed: float, size: str, where: Path, how: str = HOW, gpu: int | None = None) -> None:
    """Refuse what needs more than is available, or than a ``gpu`` of so many bytes has.

    Raises:
        InputError: with both figures.
    """
    room, whose = (available(), "memory") if gpu is None else (gpu, "the GPU's memory")
    if needed > room:
        said = f"{what} needs at least {needed / GIB:.1f} GiB of {whose}, and {room / GIB:.1f} GiB are available"
        raise InputError(f"the model is larger than memory: {said} ({size})", where=where, how=how)
