"""One setting for the device of every stage. What needs a GPU runs on one that is simulated: values are those of a CPU,
and tensors of two devices do not meet (`tests.simulated.gpu`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from factories import Judge, group, parity, policy, prompts, settings, workspace

from components.canaries.measuring import scores_of
from components.clusters.clustering import describe
from components.command import prepare_environment
from components.config.ppo import CriticSettings
from components.config.rollout import Mixing
from components.config.rollout import TorchEngine as EngineSettings
from components.config.training import LearnerSettings
from components.device import autocast, computes_in, own_device
from components.errors import InputError
from components.files import read_json
from components.learner.batch import build_batch
from components.learner.critic import Critic
from components.learner.scoring import score_all
from components.learner.torch_learner import TorchLearner
from components.policy import Policy, load_policy, loading
from components.policy import policy as policies
from components.policy.quantised import in_int8
from components.policy.weights import weights_of
from components.processes.environments import DEVICE
from components.rollout.base import Sampling
from components.rollout.torch_engine import TorchEngine
from components.stages import run_stage
from components.stages import sft as sft_stage
from components.training import assembly
from components.training.credit import Credit
from tests.simulated.gpu import simulated_gpu

CPU = torch.device("cpu")
GROUPS = [group([1.0, 0.0, 1.0]), group([0.0, 1.0, 1.0], prompt_ids=(2, 21))]
ROUNDING = 0.1
"""Nats by which a log-probability of the micro policy differs in bfloat16."""


def gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """The simulated GPU, as the device of this process."""
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    with simulated_gpu() as device:
        for module in (loading, policies, sft_stage):
            monkeypatch.setattr(module, "own_device", lambda: device)
        yield device


def moved(device: torch.device) -> Policy:
    found = policy()
    found.model.to(device)
    return found


# Which device


@pytest.mark.parametrize(
    ("setting", "count", "expected"),
    [("auto", 0, "cpu"), ("cpu", 0, "cpu"), ("auto", 1, "cuda:0"), ("cuda", 1, "cuda:0"), ("cpu", 1, "cpu")],
)
def test_a_process_has_the_device_of_the_settings(monkeypatch, setting, count, expected):
    gpus(monkeypatch, count)
    monkeypatch.setenv(DEVICE, "")
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    prepare_environment(settings(device=setting))
    assert own_device() == torch.device(expected)


def test_a_rank_has_a_gpu_of_its_own(monkeypatch):
    gpus(monkeypatch, 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert own_device() == torch.device("cuda", 1)
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(InputError, match=r"rank 2 of this machine has no GPU of its own: torch sees 2"):
        own_device()


def test_a_gpu_that_is_not_there_is_refused_and_not_replaced_by_the_cpu(monkeypatch, tmp_path):
    policy().save(tmp_path / "checkpoint")
    gpus(monkeypatch, 0)
    monkeypatch.setenv(DEVICE, "cuda")
    with pytest.raises(InputError, match="there is no GPU that torch"):
        load_policy(tmp_path / "checkpoint", settings().policy)


# Which precision


def test_auto_is_float32_on_a_cpu_and_bfloat16_on_a_gpu():
    assert computes_in("auto", CPU) == torch.float32
    assert computes_in("auto", torch.device("cuda", 0)) == torch.bfloat16
    assert computes_in("float32", torch.device("cuda", 0)) == torch.float32
    assert computes_in("bfloat16", CPU) == torch.bfloat16


def test_autocast_lowers_products_and_no_weights(gpu):
    model = moved(gpu).model
    layer = model.base_model.layers[0].mlp.down_proj
    values = torch.ones(1, layer.in_features).to(gpu)
    with autocast(model):
        assert layer(values).dtype == torch.bfloat16
    assert layer.weight.dtype == torch.float32
    assert layer(values).dtype == torch.float32


@pytest.mark.parametrize(("precision", "expected"), [("auto", torch.bfloat16), ("policy", torch.float32)])
def test_the_engine_on_a_gpu_holds_its_copy_in_bfloat16_unless_the_settings_say_otherwise(gpu, precision, expected):
    assert TorchEngine(moved(gpu), EngineSettings(precision=precision))._policy.model.dtype == expected


def test_the_engine_on_a_cpu_holds_its_copy_in_the_precision_of_the_policy():
    assert TorchEngine(policy(), EngineSettings())._policy.model.dtype == torch.float32


def test_int8_is_refused_on_a_gpu(gpu):
    with pytest.raises(InputError, match="int8 computes on CPUs alone"):
        in_int8(moved(gpu))


# Each part where the model is, its results on the CPU


@pytest.mark.parametrize("mixing", [None, Mixing(prob=0.5, neighbours=3)], ids=["plain", "mixing"])
@pytest.mark.parametrize("lean", [True, False])
def test_the_engine_draws_the_same_tokens_on_a_gpu(gpu, monkeypatch, mixing, lean):
    if not lean:
        monkeypatch.setattr("components.rollout.torch_engine.dense_model", lambda model: None)
    questions = [policy().encode_prompt(text) for text in ("1+1=", "12+37=", "503+128=")]
    sampling = Sampling(4, 12, 1.0, 7, mixing=mixing)
    here, there = (
        TorchEngine(one, EngineSettings(precision="policy")).generate(questions, sampling)
        for one in (policy(), moved(gpu))
    )
    for one, other in zip(sum(here, ()), sum(there, ()), strict=True):
        assert one.token_ids == other.token_ids
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def test_scores_of_a_batch_come_back(gpu):
    batch = build_batch(GROUPS, pad_id=0)
    here = score_all(policy().model, batch, 1.0, 64)
    there = score_all(moved(gpu).model, batch, 1.0, 64, compute_dtype="float32")
    half = score_all(moved(gpu).model, batch, 1.0, 64)
    assert there.logp.device == half.logp.device == CPU
    assert torch.allclose(here.logp, there.logp, atol=1e-4)
    assert 0 < (here.logp - half.logp).abs().max() < ROUNDING


def test_probes_prompts_and_answers_of_servers_are_scored_where_the_policy_is(gpu):
    rows = [((2, 20), (30, 31)), ((2, 20), (32,)), ((2, 21, 22), (33, 34, 35))]
    here, there = policy(), moved(gpu)
    assert scores_of(there, 1.0)(rows) == pytest.approx(scores_of(here, 1.0)(rows), abs=3 * ROUNDING)
    off = weights_of(there).scores(rows, 1.0) - weights_of(here).scores(rows, 1.0)
    assert off.device == CPU and off.abs().max() < ROUNDING
    for embed in (True, False):
        one, other = (describe(asked, prompts(3), embed=embed) for asked in (here, there))
        assert other.nll == pytest.approx(one.nll, abs=ROUNDING)
        assert one.embeddings.shape == other.embeddings.shape


def update(of: Policy, **learner: Any) -> tuple[dict[str, float], dict[str, torch.Tensor]]:
    how = settings(learner=learner)
    built = TorchLearner(of, how.learner, how.objective, 1.0)
    batch = Credit(built, None, of, how.objective).assign(build_batch(GROUPS, of.pad_id), GROUPS, step=0).batch
    return built.step(batch, seed=0), {name: weight.cpu() for name, weight in built.weights().items()}


def test_an_update_on_a_gpu_is_that_of_a_cpu(gpu):
    here, weights = update(policy(), compute_dtype="float32")
    there, moved_weights = update(moved(gpu), compute_dtype="float32")
    for name in ("loss", "grad_norm", "entropy", "update_largest"):
        assert there[name] == pytest.approx(here[name], rel=1e-3, abs=1e-5)
    assert all(torch.allclose(weights[name], moved_weights[name], atol=1e-4) for name in weights)


def test_an_update_in_bfloat16_leaves_weights_in_float32(gpu):
    found, weights = update(moved(gpu))
    assert found["grad_norm"] > 0
    assert {weight.dtype for weight in weights.values()} == {torch.float32}


def test_a_critic_learns_where_its_policy_is(gpu):
    batch = build_batch(GROUPS, pad_id=0)
    returns = torch.ones(batch.response_mask.shape)
    critic = Critic(moved(gpu), CriticSettings(), LearnerSettings(micro_batch_tokens=64))
    values = critic.values(batch)
    assert values.device == CPU
    assert critic.step(batch, returns, values)["critic_grad_norm"] > 0


def test_a_checkpoint_from_a_gpu_is_an_ordinary_folder(gpu, monkeypatch, tmp_path):
    moved(gpu).save(tmp_path / "checkpoint")
    assert load_policy(tmp_path / "checkpoint", settings().policy).model.device == gpu
    monkeypatch.setattr(loading, "own_device", lambda: CPU)
    here = load_policy(tmp_path / "checkpoint", settings().policy)
    assert all(torch.equal(weight, here.weights()[name]) for name, weight in policy().weights().items())


# The stages

VARIANTS: dict[str, dict[str, Any]] = {
    "KL": {"objective": {"kl": {"kind": "k3"}}},
    "critic": {
        "objective": {"advantage": {"kind": "gae"}},
        "schedule": {"kind": "uniform"},
        "rollout": {"dynamic_sampling": None},
    },
    "mixing": {"rollout": {"mixing": {"prob": 0.5}}, "learner": {"activation_checkpointing": True}},
    "LoRA": {"policy": {"lora": {"rank": 4, "alpha": 8}}},
    "int4 and clip_cov": {
        "rollout": {"engine": {"kind": "torch", "precision": "int4"}},
        "objective": {"selection": {"kind": "clip_cov"}},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_trains_on_a_gpu(gpu, tmp_path, monkeypatch, variant):
    layout = workspace(tmp_path)
    monkeypatch.setattr(assembly, "Scorer", lambda *args: Judge(parity))
    run_stage("train", settings(**VARIANTS[variant]), layout)
    final = read_json(layout.train_metrics)["final"]
    assert final["grad_norm"] > 0 and final["updates_skipped"] == 0


@pytest.mark.slow
def test_the_stages_before_and_after_training_run_on_a_gpu(gpu, tmp_path):
    layout, chosen = workspace(tmp_path), settings(triage={"override": "nothing is learned here"}, train={"steps": 2})
    for stage in ("sft", "triage", "clusters", "train", "evaluate"):
        run_stage(stage, chosen, layout)
    assert read_json(layout.evaluation)["checkpoint_sha256"]
