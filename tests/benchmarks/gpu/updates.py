"""One update on a GPU, of ours or of TRL; on a CPU the same code with a toy."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import distributed
from transformers import Qwen2Config, Qwen2ForCausalLM

from components.config.policy import LoraSettings
from components.config.training import LOGITS_AT_ONCE, LearnerSettings
from components.device import autocast
from components.learner.objective import advantages_of
from components.learner.ranks import Peers
from components.learner.sharding import Source, build_sharding
from components.learner.torch_learner import TorchLearner
from components.policy import Policy
from components.processes import free_port
from components.types import Completion, Group, Prompt, Score
from tests.benchmarks.gpu.flops import Shape, peak_flops, step_flops
from tests.benchmarks.micro.agreement import Update
from tests.benchmarks.micro.shapes import END, FIRST, PAD, tokenizer_of
from tests.benchmarks.micro.updating import BETAS, OBJECTIVE, RATE, TRLS, WHOLE, credited
from tests.benchmarks.section import Row, skipped

Step = Callable[[], Update]
WARM, STEPS = 2, 5
OURS: dict[str, dict[str, Any]] = {
    "torch": {},
    "torch, logits whole": {"logits_at_once": WHOLE},
    "torch, 2^27 logits at once": {"logits_at_once": 2**27},
    "torch, checkpointing": {"activation_checkpointing": True},
    "torch, LoRA": {},
    "fsdp2": {"kind": "fsdp2"},
    "ZeRO 2": {"kind": "deepspeed", "zero": {"stage": 2}},
    "ZeRO 3": {"kind": "deepspeed", "zero": {"stage": 3}},
}
TRL: dict[str, dict[str, Any]] = {"TRL": {}, "TRL, checkpointing": {"gradient_checkpointing": True}}


PLAIN = "plain PyTorch"
NEEDS = {
    **dict.fromkeys(TRL, "trl"),
    **dict.fromkeys(("ZeRO 2", "ZeRO 3"), "deepspeed"),
    "torch, LoRA": "peft",
}
"""Packages that a way takes besides torch and transformers."""


def measure(shape: Shape, way: str, device: torch.device) -> Row:
    """Times by the clock, peak memory and loss of one way, in bf16 passes with fp32 weights and moments."""
    if way in NEEDS and find_spec(NEEDS[way]) is None:
        return skipped(f"{NEEDS[way]} is not installed")
    policy, groups = policy_of(shape, device), groups_of(shape)
    parameters = policy.parameters
    made, seconds = list[Update](), list[float]()
    try:
        step = step_of(policy, groups, shape, way, device)
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
    name = name_of(device)
    return {
        "device": name,
        "parameters": parameters,
        "tokens": shape.tokens,
        "model_flops": step_flops(shape, parameters, frozen=way == "torch, LoRA"),
        "peak_flops_per_s": peak_flops(name),
        "seconds": seconds[WARM:],
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else None,
        "loss": made[0][0],
        "grad_norm": made[0][1],
    }


def step_of(policy: Policy, groups: list[Group], shape: Shape, way: str, device: torch.device) -> Step:
    """One of the ways."""
    if way in TRL:
        return trls(policy, groups, shape, TRL[way], device)
    return plain(policy, groups, shape) if way == PLAIN else ours(policy, groups, shape, way, device)


def name_of(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def policy_of(shape: Shape, device: torch.device) -> Policy:
    """Random weights in fp32, made where they are used; the same for every way on one device."""
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
    with device:
        model = Qwen2ForCausalLM(config)
    return Policy(model.float().eval(), tokenizer_of(shape.vocabulary), chat=False)


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
    if way == "torch, LoRA":
        from components.policy.lora import adapted

        policy = adapted(policy, LoraSettings(), seed=0)
    if settings.kind == "torch":
        learner = TorchLearner(policy, settings, OBJECTIVE, 1.0)
    else:
        ranks = alone(device)
        source = Source(ranks, device, policy.model.state_dict())
        learner = TorchLearner(
            Policy(empty_copy(policy.model), policy.tokenizer, chat=False),
            settings,
            OBJECTIVE,
            1.0,
            sharding=lambda made, how: build_sharding(made, how, source),
            ranks=ranks,
        )
    batch = credited(learner, policy, groups)

    def step() -> Update:
        signals = learner.step(batch, seed=0)
        return signals["loss"], signals["grad_norm"]

    return step


def empty_copy(model: Qwen2ForCausalLM) -> Qwen2ForCausalLM:
    """The same model on the meta device, as ranks build it."""
    from accelerate import init_empty_weights

    with init_empty_weights(include_buffers=False):
        made = Qwen2ForCausalLM(model.config)
    made.tie_weights()
    return made.float().eval()


def plain(policy: Policy, groups: list[Group], shape: Shape) -> Step:
    """The same update in a dozen lines of PyTorch: logits whole, padding computed, one clip of all gradients."""
    model = policy.model
    batch = credited(TorchLearner(policy, LearnerSettings(), OBJECTIVE, 1.0), policy, groups)
    adamw = torch.optim.AdamW(model.parameters(), lr=RATE, betas=BETAS, weight_decay=0.0, fused=True)
    parts = [part.to(model.device) for part in batch.micro_batches(max(64, shape.pass_rows * shape.length))]
    count = int(batch.response_mask.sum())

    def step() -> Update:
        loss = 0.0
        for part in parts:
            ids, width = part.input_ids, part.responses
            with autocast(model, "bfloat16"):
                logits = model(input_ids=ids, attention_mask=part.attention_mask, logits_to_keep=width + 1).logits
            logp = logits[:, :-1].float().log_softmax(-1).gather(-1, ids[:, -width:, None]).squeeze(-1)
            ratio = (logp - logp.detach()).exp()
            part_loss = -(ratio * advantages_of(part))[part.response_mask].sum() / count
            part_loss.backward()
            loss += part_loss.item()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
        adamw.step()
        adamw.zero_grad(set_to_none=True)
        return loss, norm

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
