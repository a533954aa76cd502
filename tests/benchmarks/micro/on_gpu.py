"""One update on a GPU, of ours or of TRL; on a CPU the same code with a toy."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import distributed
from transformers import Qwen2Config, Qwen2ForCausalLM

from components.config.training import LOGITS_AT_ONCE, LearnerSettings
from components.learner.ranks import Peers
from components.learner.sharding import SHARDINGS
from components.learner.torch_learner import TorchLearner
from components.policy import Policy
from components.processes import free_port
from components.types import Completion, Group, Prompt, Score
from tests.benchmarks.micro.agreement import Update
from tests.benchmarks.micro.flops import Shape, peak_flops, step_flops
from tests.benchmarks.micro.shapes import END, FIRST, PAD, tokenizer_of
from tests.benchmarks.micro.updating import OBJECTIVE, RATE, TRLS, WHOLE, credited
from tests.benchmarks.section import Row, skipped

Step = Callable[[], Update]
WARM, STEPS = 2, 5
OURS: dict[str, dict[str, Any]] = {
    "torch": {},
    "torch, logits whole": {"logits_at_once": WHOLE},
    "torch, checkpointing": {"activation_checkpointing": True},
    "fsdp2": {"kind": "fsdp2"},
    "ZeRO 2": {"kind": "deepspeed", "zero": {"stage": 2}},
    "ZeRO 3": {"kind": "deepspeed", "zero": {"stage": 3}},
}
TRL: dict[str, dict[str, Any]] = {"TRL": {}, "TRL, checkpointing": {"gradient_checkpointing": True}}


def measure(shape: Shape, way: str, device: torch.device) -> Row:
    """Times by the clock, peak memory and loss of one way, in bf16 passes with fp32 weights and moments."""
    policy, groups = policy_of(shape), groups_of(shape)
    parameters = policy.parameters
    made, seconds = list[Update](), list[float]()
    try:
        step = trls(policy, groups, shape, TRL[way], device) if way in TRL else ours(policy, groups, shape, way, device)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        for _ in range(WARM + STEPS):
            synchronize(device)
            began = time.perf_counter()
            made.append(step())
            synchronize(device)
            seconds.append(time.perf_counter() - began)
    except torch.OutOfMemoryError as error:
        return skipped(f"out of memory: {str(error).splitlines()[0]}")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    return {
        "device": name,
        "parameters": parameters,
        "tokens": shape.tokens,
        "model_flops": step_flops(shape, parameters),
        "peak_flops_per_s": peak_flops(name),
        "seconds": seconds[WARM:],
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else None,
        "loss": made[0][0],
        "grad_norm": made[0][1],
    }


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def policy_of(shape: Shape) -> Policy:
    """Random weights in fp32, on the CPU; the same for every way."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=END,
        pad_token_id=PAD,
    )
    return Policy(Qwen2ForCausalLM(config).float().eval(), tokenizer_of(shape.vocabulary), chat=False)


def groups_of(shape: Shape) -> list[Group]:
    """Rows that are all of the full length, so that no padding is counted as work; rewards are 0 and 1."""
    draw = random.Random(0)

    def words(count: int) -> tuple[int, ...]:
        return tuple(draw.choices(range(FIRST, shape.vocabulary), k=count))

    def group(number: int) -> Group:
        rows = tuple(
            Completion((*words(shape.response - 1), END), (0.0,) * shape.response, "stop", "")
            for _ in range(shape.group)
        )
        scores = tuple(Score(float(row < 1 + number % (shape.group - 1))) for row in range(shape.group))
        return Group(Prompt(str(number), "", "", ""), words(shape.prompt), rows, scores)

    return [group(number) for number in range(shape.rows // shape.group)]


def ours(policy: Policy, groups: list[Group], shape: Shape, way: str, device: torch.device) -> Step:
    """Our learner in this process, alone or as the only rank of a sharding."""
    settings = LearnerSettings(
        compute_dtype="bfloat16",
        lr=RATE,
        warmup=0,
        micro_batch_tokens=max(64, shape.pass_rows * shape.length),
        **{"logits_at_once": LOGITS_AT_ONCE, **OURS[way]},
    )
    if settings.kind == "torch":
        policy.model.to(device)
        learner = TorchLearner(policy, settings, OBJECTIVE, 1.0)
    else:
        ranks = alone(device)
        sharding = partial(SHARDINGS[settings.kind], ranks=ranks, device=device)
        learner = TorchLearner(policy, settings, OBJECTIVE, 1.0, sharding=sharding, ranks=ranks)
    batch = credited(learner, policy, groups)

    def step() -> Update:
        signals = learner.step(batch, seed=0)
        return signals["loss"], signals["grad_norm"]

    return step


def alone(device: torch.device) -> Peers:
    """A group of one process."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "LOCAL_RANK": "0"}
    os.environ["DS_ACCELERATOR"] = device.type
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", rank=0, world_size=1)
    return Peers(0, 1, device)


def trls(policy: Policy, groups: list[Group], shape: Shape, chosen: dict[str, Any], device: torch.device) -> Step:
    """TRL's trainer, which puts the model where the device is."""
    from tests.benchmarks.micro.trl_trainer import updater

    settings = {**TRLS, "bf16": True, "use_cpu": device.type == "cpu", **chosen}
    trainer = updater(policy.model, policy.tokenizer, groups, shape.pass_rows * shape.length, **settings)
    batches = trainer.batches()
    return lambda: trainer.update(batches)
