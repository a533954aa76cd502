"""Sampling on a GPU: the embedded engine, `transformers.generate`, and its continuous batching; on a CPU with a toy."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig

from components.policy import Policy
from tests.benchmarks.gpu.flops import Shape
from tests.benchmarks.gpu.updates import name_of, policy_of, synchronize
from tests.benchmarks.micro.cases import Sampled
from tests.benchmarks.micro.rates import Way
from tests.benchmarks.micro.sampling import Prompts, engine, generate
from tests.benchmarks.micro.shapes import END, FIRST
from tests.benchmarks.section import Row, skipped

WARM, ROUNDS = 1, 3
PAGE, BATCH = 128, 4096
"""Tokens of a page of a cache, and at most in one pass, of transformers' continuous batching."""


def measure(shape: Shape, way: str, device: torch.device) -> Row:
    """Tokens and seconds by the clock of rounds of one way, with weights in bf16.

    Prompts and new tokens have the length of the shape's prompt; about no row ends before, as weights are random.
    """
    case = Sampled("gpu", prompts=shape.rows // shape.group, group=shape.group, limit=shape.prompt, precision="bf16")
    policy, draw = policy_of(shape, device), random.Random(0)
    policy.model.to(torch.bfloat16)
    prompts = [tuple(draw.choices(range(FIRST, shape.vocabulary), k=shape.prompt)) for _ in range(case.prompts)]
    tokens, seconds = list[int](), list[float]()
    try:
        sample = WAYS[way](policy, prompts, (), case)
        for number in range(WARM + ROUNDS):
            synchronize(device)
            began = time.perf_counter()
            tokens.append(sample(number))
            synchronize(device)
            seconds.append(time.perf_counter() - began)
    except torch.OutOfMemoryError as error:
        return skipped(f"out of memory: {str(error).splitlines()[0]}")
    found = {"device": name_of(device), "rows": case.rows, "tokens": tokens[WARM:], "seconds": seconds[WARM:]}
    return {**found, "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else None}


def continuous(policy: Policy, prompts: Prompts, ends: tuple[int, ...], case: Sampled) -> Way:
    """transformers' continuous batching, with a paged cache that has room for all rows at once; without a size it takes
    most of the device's memory."""
    policy.model.set_attn_implementation("sdpa")
    pages = case.rows * math.ceil((max(map(len, prompts)) + case.limit) / PAGE)
    room = ContinuousBatchingConfig(page_size=PAGE, num_blocks=2 * pages, max_batch_tokens=BATCH)
    how = GenerationConfig(
        do_sample=True, top_k=0, max_new_tokens=case.limit, pad_token_id=policy.pad_id, eos_token_id=END
    )
    rows = [list(prompt) for prompt in prompts for _ in range(case.group)]

    def way(seed: int) -> int:
        torch.manual_seed(seed)
        found = policy.model.generate_batch(
            rows, how, continuous_batching_config=room, progress_bar=False, persistent_manager=True
        )
        written = sum(len(one.generated_tokens) for one in found.values())
        if len(found) != len(rows) or not written:
            raise ValueError(f"{len(found)} of {len(rows)} rows came back, with {written} tokens")
        return written

    return way


WAYS: dict[str, Callable[[Policy, Prompts, tuple[int, ...], Sampled], Way]] = {
    "engine": engine,
    "transformers generate": generate,
    "transformers continuous batching": continuous,
}
