"""Learner, sampler, scoring, adapter and hand-over on a GPU, each next to another way to the same numbers."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
import torch
from torch import distributed

from components.config.policy import LoraSettings, PolicySettings
from components.config.rollout import TorchEngine as EngineSettings
from components.learner.batch import build_batch
from components.learner.scoring import score_all
from components.learner.torch_learner import TorchLearner
from components.models.convert import convert
from components.policy import Policy, load_policy
from components.rollout.base import Sampling
from components.rollout.torch_engine import TorchEngine
from components.training.credit import Credit
from components.types import Group, Score
from tests.benchmarks.gpu import hand_over, sampling, updates
from tests.benchmarks.gpu.flops import TOY
from tests.unit import factories

pytestmark = pytest.mark.gpu
GAP = {"policy": 1e-3, "auto": 0.1}
"""Nats by which a token's log-probability may differ between sampler and scoring on average, by the engine's
precision; in bfloat16 of a policy with large random weights."""


def sampled(policy: Policy, precision: str) -> list[Group]:
    prompts = [policy.encode_prompt(text) for text in ("1+1=", "12+37=", "Name the capital of France.")]
    found = TorchEngine(policy, EngineSettings(precision=precision)).generate(prompts, Sampling(4, 24, 1.0, 7))
    prompt, scores = factories.prompts(1)[0], tuple(Score(float(n % 2)) for n in range(4))
    return [Group(prompt, ids, rows, scores) for ids, rows in zip(prompts, found, strict=True)]


# Learner


@pytest.mark.parametrize(
    "other", ["plain PyTorch", "torch, logits whole", "torch, checkpointing", "fsdp2", "TRL", "ZeRO 2"]
)
def test_the_gradient_is_that_of_another_implementation(device, other, monkeypatch):
    monkeypatch.setattr(os, "environ", os.environ.copy())  # a group of ranks leaves its address there, and TRL reads it
    try:
        ours, theirs = (updates.measure(TOY, way, device) for way in ("torch", other))
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()
    if "skipped" in theirs:
        pytest.skip(theirs["skipped"])
    assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=0.02)
    assert ours["device"] == theirs["device"]


def update(policy: Policy, groups: list[Group], **learner) -> tuple[dict[str, float], TorchLearner]:
    how = factories.settings(learner={"lr": 1e-4, "updates_per_step": 1, **learner})
    built = TorchLearner(policy, how.learner, how.objective, 1.0)
    batch = Credit(built, None, policy, how.objective).assign(build_batch(groups, policy.pad_id), groups, 0).batch
    return built.step(batch, seed=0), built


def test_an_update_in_float32_is_that_of_a_cpu(loaded, checkpoint, monkeypatch):
    groups = sampled(loaded, "policy")
    there, learner = update(loaded, groups, compute_dtype="float32")
    monkeypatch.setenv("EVENKEEL_DEVICE", "cpu")
    here, other = update(load_policy(checkpoint, PolicySettings()), groups, compute_dtype="float32")
    for name in ("grad_norm", "entropy", "ratio_mean"):
        assert there[name] == pytest.approx(here[name], rel=1e-2)
    for name, weight in other.weights().items():
        assert torch.allclose(learner.weights()[name].cpu(), weight, atol=3e-4), name  # AdamW's first step has size lr


def test_an_update_in_bfloat16_has_the_gradient_of_one_in_float32_and_leaves_weights_in_float32(loaded):
    groups = sampled(loaded, "policy")
    full, _ = update(loaded.frozen_copy(), groups, compute_dtype="float32")
    half, learner = update(loaded, groups)
    assert half["grad_norm"] == pytest.approx(full["grad_norm"], rel=0.1)
    assert {weight.dtype for weight in learner.weights().values()} == {torch.float32}


def test_attention_has_a_gradient_where_cudnn_has_none(device):
    """On Hopper with torch 2.11 cuDNN gives NaN for a length of 64 with a mask and very negative logits."""
    generator = torch.Generator().manual_seed(0)
    queries, keys, values = 0.1 * torch.randn(3, 1, 2, 64, 64, generator=generator)
    queries[..., 0], keys[..., 0] = 1.0, -960.0  # logits of -120
    given = [tensor.to(device, torch.bfloat16).requires_grad_() for tensor in (queries, keys, values)]
    mask = torch.ones(64, 64, dtype=torch.bool, device=device).tril()
    torch.nn.functional.scaled_dot_product_attention(*given, attn_mask=mask).float().sum().backward()
    assert all(tensor.grad is not None and tensor.grad.isfinite().all() for tensor in given)


def test_a_checkpoint_of_the_learner_is_loaded_to_the_bit(loaded, tmp_path):
    groups = sampled(loaded, "policy")
    start = loaded.frozen_copy()
    _, first = update(loaded, groups)
    first.snapshot(tmp_path)()
    _, second = update(start, groups[:1])
    second.load(tmp_path)
    assert all(torch.equal(weight, second.weights()[name]) for name, weight in first.weights().items())


# Sampling and scoring


@pytest.mark.parametrize("precision", GAP)
def test_the_sampler_reports_the_log_probabilities_that_scoring_finds(loaded, device, precision):
    batch = build_batch(sampled(loaded, precision), loaded.pad_id)
    dtype = "float32" if precision == "policy" else "auto"
    stats = score_all(loaded.model, batch, 1.0, 4096, compute_dtype=dtype)
    gap = (stats.logp - batch.rollout_logp).abs()[batch.response_mask].mean().item()
    assert stats.logp.device.type == "cpu"
    assert gap < GAP[precision]


@pytest.mark.parametrize("way", sampling.WAYS)
def test_every_sampler_writes_its_rows(device, way):
    if way == "transformers continuous batching" and device.type == "cpu":
        pytest.skip("it is for GPUs")
    found = sampling.measure(TOY, way, device)
    assert all(0 < tokens <= TOY.rows * TOY.prompt for tokens in found["tokens"])


# Adapter, hand-over, checkpoint


@pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed")
def test_an_adapter_learns_on_the_gpu_and_is_merged_into_an_ordinary_folder(loaded, tmp_path, monkeypatch):
    from components.policy.lora import adapted

    policy, groups = adapted(loaded, LoraSettings(rank=4, alpha=8), seed=0), sampled(loaded, "auto")
    found, _ = update(policy, groups)
    assert found["grad_norm"] > 0
    policy.save(tmp_path / "saved")
    assert (tmp_path / "saved" / "adapter" / "adapter_model.safetensors").exists()
    monkeypatch.setenv("EVENKEEL_DEVICE", "cpu")
    merged = load_policy(tmp_path / "saved", PolicySettings()).weights()
    assert all(torch.allclose(weight.cpu(), merged[name], atol=1e-6) for name, weight in policy.weights().items())


def test_another_process_has_the_weights_that_it_was_handed(device):
    assert len(hand_over.measure(TOY, device)["seconds"]) == hand_over.ROUNDS


@pytest.mark.skipif(find_spec("gguf") is None, reason="gguf is not installed")
def test_a_file_of_weights_is_converted_on_a_machine_with_a_gpu(device, tmp_path):
    from tests.unit.gguf_files import write_gguf

    write_gguf(tmp_path / "tiny.gguf")
    convert(tmp_path / "tiny.gguf", tmp_path / "model", lambda line: None)
    assert load_policy(tmp_path / "model", PolicySettings()).model.device == device
