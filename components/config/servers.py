"""Inference servers that completions come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import floor
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from components.config.base import Section
from components.config.identity import TRAINED
from components.config.urls import check_urls

Dtype = Literal["policy", "float32", "bfloat16", "float16"]
KvDtype = Literal["auto", "fp8_e4m3", "fp8_e5m2"]


class CheckSettings(Section):
    """The log-prob check after every hand-over of weights.

    Each server that comes up samples from a fixed prompt. What the first one samples is the text whose
    log-probabilities every server gives after every hand-over, to be compared with those of the learner. A limit that
    is not given follows the server's precision (`components.rollout.servers.check.LIMITS`).
    """

    prompt: str = Field(
        "Tell me something.",
        min_length=1,
        description="The question that is sampled from. One that the policy is not sure of: the same answer again and "
        "again hides small updates.",
    )
    samples: int = Field(16, ge=1, description="Completions sampled from the prompt.")
    tokens: int = Field(16, ge=1, description="New tokens per sample at the most.")
    mean_gap: float | None = Field(None, gt=0, description="Largest mean of |server - policy| over tokens, nats.")
    max_gap: float | None = Field(None, gt=0, description="Largest |server - policy| of a token, nats.")


class ServerEngine(Section):
    """What both dialects of server have in common."""

    kind: Annotated[str, TRAINED]
    urls: tuple[str, ...] = Field((), description="Servers that run already, such as http://rollout-0:8000.")
    folder: Path | None = Field(
        None,
        description="Where weights are put for the servers to read; servers on other machines need it shared. None: "
        "the run's folder of logs.",
    )
    dtype: Annotated[Dtype, TRAINED] = Field(
        "policy", description="Of the servers' weights; for given servers, what they must say."
    )
    concurrency: int = Field(64, ge=1, description="Prompts in flight per server.")
    attempts: int = Field(3, ge=1, description="Servers that one prompt is tried on before the run stops.")
    request_timeout: float = Field(600, gt=0, description="Seconds that all completions of one prompt may take.")
    canary_every: float = Field(15, gt=0, description="Seconds between one-token requests while servers work.")
    canary_timeout: float = Field(60, gt=0, description="Seconds without its one token after which a server is bad.")
    start_timeout: float = Field(900, gt=0, description="Seconds until a server must answer for the first time.")
    sync_timeout: float = Field(300, gt=0, description="Seconds that one step of a hand-over of weights may take.")
    recovery_timeout: float = Field(900, gt=0, description="Seconds without any sound server before the run stops.")
    check: CheckSettings = CheckSettings()

    @field_validator("urls")
    @classmethod
    def _servers(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        check_urls(urls)
        return urls


STARTED = (
    "python",
    "max_num_seqs",
    "cpu_cache_gib",
    "gpu_memory",
    "tensor_parallel",
    "devices",
    "eager",
    "restarts",
    "sleep",
)
"""Settings of `VllmEngine` that only a server that the run starts can be given."""


class VllmEngine(ServerEngine):
    """`vllm serve` over HTTP, token ids in and out: servers given by URL, or processes that the run starts."""

    kind: Annotated[Literal["vllm"], TRAINED]
    processes: int = Field(0, ge=0, description="Servers to start here; 0 with `urls`.")
    python: Path | None = Field(
        None,
        description="Python of vLLM's environment. None: .venv-vllm next to the running one, here, or above.",
    )
    transfer: Literal["files", "broadcast", "adapter"] = Field(
        "files",
        description="How weights travel: safetensors files; a broadcast between processes (NCCL on GPUs, gloo on "
        "CPUs); or, with policy.lora, files of the adapter alone, which the servers add to the base as they compute.",
    )
    kv_cache_dtype: Annotated[KvDtype, TRAINED] = Field(
        "auto", description="Of the KV cache; auto: as the weights. For given servers, what they must say."
    )
    max_model_len: Annotated[int | None, TRAINED] = Field(
        None, ge=16, description="Positions per sequence. None: the model's own."
    )
    max_num_seqs: int | None = Field(None, ge=1, description="Sequences decoded together. None: vLLM's default.")
    cpu_cache_gib: int = Field(1, ge=1, description="KV cache of a server on CPUs.")
    gpu_memory: float = Field(0.9, gt=0, le=1, description="Share of a GPU's memory that a server takes.")
    tensor_parallel: int = Field(1, ge=1, description="Devices that the weights of one server are split over.")
    devices: tuple[str, ...] = Field(
        (),
        description="CUDA_VISIBLE_DEVICES of each process, such as ['0', '1'], or ['0,1', '2,3'] with tensor_parallel "
        "2. None: what the run sees.",
    )
    eager: bool = Field(True, description="Without torch.compile and CUDA graphs: a quicker start, a slower server.")
    restarts: int = Field(3, ge=0, description="Times that each process may be replaced in a run.")
    sleep: bool = Field(
        False,
        description="Server and learner share a GPU: the server gives up its memory while the learner updates, and the "
        "learner keeps the moments of its optimizer in host memory while the server samples.",
    )

    def conflicts(self) -> Iterator[str]:
        if bool(self.urls) == bool(self.processes):
            yield (
                f"engine vllm needs either urls ({len(self.urls)} given) or processes ({self.processes}): name the "
                "servers, or say how many to start"
            )
        if self.devices and len(self.devices) != self.processes:
            yield f"devices names {len(self.devices)}, processes is {self.processes}; give one for each"
        fields = type(self).model_fields
        if self.urls and self.transfer == "adapter":
            yield (
                "transfer adapter is for servers that the run starts (processes), from the base of the adapter; use "
                "transfer files or broadcast"
            )
        if self.urls and (given := [name for name in STARTED if getattr(self, name) != fields[name].default]):
            yield (
                f"{', '.join(given)} is for servers that the run starts (processes); those of urls have been started "
                "with options of their own: leave it out"
            )
        named = [[name.strip() for name in entry.split(",")] for entry in self.devices]
        for entry, names in zip(self.devices, named, strict=True):
            if len(set(names)) != len(names) or len(names) != self.tensor_parallel or not all(names):
                example = ",".join(map(str, range(self.tensor_parallel)))
                yield (
                    f"devices {entry!r}: each process needs tensor_parallel ({self.tensor_parallel}) different ones, "
                    f"separated by commas, such as {example!r}"
                )
        for device, times in Counter(name for names in named for name in names).items():
            if times * self.gpu_memory > 1:
                yield (
                    f"device {device} is named {times} times, and each process takes its share of the memory "
                    f"(gpu_memory, {self.gpu_memory:g}); give each its own, or lower gpu_memory to "
                    f"{floor(100 / times) / 100:g}"
                )
        if self.max_model_len is not None and self.check.tokens >= self.max_model_len:
            yield (
                f"check.tokens ({self.check.tokens}) and a prompt do not fit into max_model_len ({self.max_model_len})"
            )

    def as_policy(self) -> VllmEngine:
        """The same, at the policy's own precision where the run decides on it."""
        if self.urls:
            return self
        return self.model_copy(update={"dtype": "policy", "kv_cache_dtype": "auto"})


class SglangEngine(ServerEngine):
    """SGLang servers that run already, over their native HTTP interface. Weights travel as files."""

    kind: Annotated[Literal["sglang"], TRAINED]
    urls: tuple[str, ...] = Field(min_length=1, description="Servers that run, such as http://rollout-0:30000.")

    def as_policy(self) -> SglangEngine:
        return self
