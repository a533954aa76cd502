"""What an update costs on a GPU: ``python -m tests.benchmarks.learner_gpu``, about five minutes on one GPU.

Models with random weights in the shapes of Qwen2.5 0.5B and 1.5B, one rank, bf16 passes, fp32 weights and moments. A
row is one sharding with logits whole or in pieces: ms a step, tokens a second, peak memory, and the share of the GPU's
bf16 peak that the model's own arithmetic uses (MFU: 6 FLOPs a parameter and token, and 12 x layers x width x length for
the attention; what checkpointing computes again does not count). Without a GPU a toy model shows that it runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import distributed
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from components.config.objective import ObjectiveSettings
from components.config.training import LOGITS_AT_ONCE, LearnerSettings
from components.learner import Batch, batch_of_rows
from components.learner.ranks import Peers
from components.learner.sharding import SHARDINGS
from components.learner.torch_learner import TorchLearner
from components.policy import Policy
from components.processes import free_port

PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40": 181e12, "4090": 165e12}
"""Dense bf16 FLOP/s by a part of the device's name, from the makers' data sheets."""
WHOLE = 2**40
WARM, STEPS = 2, 5


@dataclass(frozen=True)
class Shape:
    """A model, and how long and many its rows are."""

    name: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    vocabulary: int = 151_936
    rows: int = 64
    prompt: int = 256
    response: int = 768


SHAPES = (Shape("0.5B", 896, 4864, 24, 14), Shape("1.5B", 1536, 8960, 28, 12))
TOY = (Shape("toy", 64, 128, 2, 4, vocabulary=512, rows=4, prompt=8, response=16),)
KINDS: tuple[dict[str, Any], ...] = (
    {"kind": "fsdp2"},
    {"kind": "deepspeed", "zero": {"stage": 2}},
    {"kind": "deepspeed", "zero": {"stage": 3}},
)


def policy_of(shape: Shape) -> Policy:
    """Random weights; nothing is rendered, so the tokenizer is of no use."""
    config = Qwen2Config(
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=2,
        vocab_size=shape.vocabulary,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    return Policy(Qwen2ForCausalLM(config).float().eval(), PreTrainedTokenizerFast.__new__(PreTrainedTokenizerFast))


def batch_of(shape: Shape) -> Batch:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(0, shape.vocabulary, (shape.rows, shape.prompt + shape.response), generator=generator).tolist()
    scored = batch_of_rows([(row[: shape.prompt], row[shape.prompt :]) for row in rows], pad_id=0)
    advantages = torch.randn(shape.rows, 1, generator=generator).expand(scored.response_mask.shape)
    return Batch(**{**scored.__dict__, "advantages": advantages})


def measure(shape: Shape, chosen: dict[str, Any], logits: int, again: bool, device: torch.device) -> dict[str, Any]:
    """One row of the result."""
    settings = LearnerSettings(
        compute_dtype="bfloat16" if device.type == "cuda" else "float32",
        activation_checkpointing=again,
        logits_at_once=logits,
        micro_batch_tokens=max(64, 8 * (shape.prompt + shape.response)),
        lr=1e-6,
        **chosen,
    )
    ranks = Peers(0, 1, device)
    sharding = partial(SHARDINGS[settings.kind], ranks=ranks, device=device)
    policy, batch = policy_of(shape), batch_of(shape)
    parameters = policy.parameters
    learner = TorchLearner(policy, settings, ObjectiveSettings(), 1.0, sharding=sharding, ranks=ranks)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    times, signals = [], {}
    for step in range(WARM + STEPS):
        began = time.perf_counter()
        signals = learner.step(batch, seed=step)  # it ends with numbers on the host, so the device has finished
        times.append(time.perf_counter() - began)
    seconds, tokens = statistics.median(times[WARM:]), shape.rows * (shape.prompt + shape.response)
    flops = (6 * parameters + 12 * shape.layers * shape.hidden * (shape.prompt + shape.response)) * tokens
    peak = peak_flops(device)
    return {
        "model": shape.name,
        "parameters": parameters,
        "kind": settings.kind,
        "stage": settings.zero.stage if settings.kind == "deepspeed" else None,
        "logits": "whole" if logits == WHOLE else "in pieces",
        "checkpointing": again,
        "ms": round(1e3 * seconds, 1),
        "tokens_per_s": round(tokens / seconds),
        "tflops": round(flops / seconds / 1e12, 2),
        "mfu": round(flops / seconds / peak, 4) if peak else None,
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2) if device.type == "cuda" else None,
        "loss": signals["loss"],
        "grad_norm": signals["grad_norm"],
    }


def peak_flops(device: torch.device) -> float | None:
    """What the device can do at best; None where that is not known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((flops for part, flops in PEAKS.items() if part in name), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=9.0, help="start no further row after so many")
    minutes = parser.parse_args().minutes
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", 0) if cuda else torch.device("cpu")
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "LOCAL_RANK": "0"}
    os.environ["DS_ACCELERATOR"] = device.type
    distributed.init_process_group("nccl" if cuda else "gloo", rank=0, world_size=1)
    print(
        json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name(0) if cuda else "cpu"}), flush=True
    )
    until = time.monotonic() + 60 * minutes
    for shape in SHAPES if cuda else TOY:
        print(json.dumps(asdict(shape)), flush=True)
        for chosen in KINDS:
            for logits, again in ((LOGITS_AT_ONCE, False), (WHOLE, False), (LOGITS_AT_ONCE, True)):
                if time.monotonic() > until:
                    print("out of time", flush=True)
                    return
                try:
                    row = measure(shape, chosen, logits, again, device)
                except torch.OutOfMemoryError as error:
                    row = {"model": shape.name, **chosen, "logits": logits, "error": str(error).splitlines()[0]}
                print(json.dumps(row), flush=True)
                if cuda:
                    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
