"""Weights from a process that learns to one that samples, both on one GPU: memory that both see (CUDA IPC).

The learner's weights are in fp32. Each hand-over rounds them to bf16 in buffers that the sampler has mapped once; the
sampler copies them to its own and says what they add up to. On a CPU the same code takes shared memory.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor, multiprocessing

from tests.benchmarks.gpu.flops import Shape
from tests.benchmarks.gpu.updates import name_of, policy_of, synchronize
from tests.benchmarks.section import Row

ROUNDS = 5
PATIENCE = 300.0
"""Seconds that an answer may take; the other process loads torch first."""


def measure(shape: Shape, device: torch.device) -> Row:
    """Seconds of the first hand-over, with the start of the other process, and of those after it.

    Raises:
        ValueError: the other process has other weights than it was given.
    """
    weights = {name: weight.to(device) for name, weight in policy_of(shape, device).weights().items()}
    shared = {name: weight.to(torch.bfloat16).share_memory_() for name, weight in weights.items()}
    context = multiprocessing.get_context("spawn")
    there, back = context.Queue(), context.Queue()
    process = context.Process(target=receive, args=(there, back), daemon=True)
    process.start()
    seconds = []
    try:
        for number in range(1 + ROUNDS):
            for weight in weights.values():
                weight.add_(1e-2)
            synchronize(device)
            began = time.perf_counter()
            for name, weight in weights.items():
                shared[name].copy_(weight)
            synchronize(device)
            there.put(number if number else shared)
            found = back.get(timeout=PATIENCE)
            seconds.append(time.perf_counter() - began)
            if found != total(shared):
                raise ValueError(f"the weights add up to {found} there and to {total(shared)} here")
        there.put(None)
        process.join(PATIENCE)
    finally:
        process.kill()
    size = sum(weight.numel() * weight.element_size() for weight in shared.values())
    return {"device": name_of(device), "bytes": size, "first_s": seconds[0], "seconds": seconds[1:]}


def receive(there: Any, back: Any) -> None:
    """The process that samples."""
    shared: dict[str, Tensor] = there.get()
    own = {name: torch.empty_like(weight) for name, weight in shared.items()}
    message: Any = shared
    while message is not None:
        for name, weight in shared.items():
            own[name].copy_(weight)
        back.put(total(own))  # which waits for the copies
        message = there.get()


def total(weights: dict[str, Tensor]) -> float:
    return sum(float(weight.double().sum()) for weight in weights.values())
