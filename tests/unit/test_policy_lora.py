"""Policies with a low-rank adapter: what is learned, what is saved, and what others read of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from factories import LORA, gpt2, policy, prompts, settings, with_adapter
from peft import PeftModel
from test_dpo_trainer import pairs
from test_learner import batch_of, sampled

from components.checkpoints.checks import check_proposed
from components.config.dpo import DpoSettings
from components.config.policy import LoraSettings, PolicySettings, SftSettings
from components.dpo.trainer import DpoTrainer
from components.errors import InputError
from components.learner.state import read_tensors
from components.learner.torch_learner import TorchLearner
from components.policy import Policy, load_policy
from components.policy.lora import adapted
from components.sft.trainer import SftTrainer
from components.stages.sft import initial_policy

IDS = torch.arange(4, 24)[None]


def logits(of: Policy) -> torch.Tensor:
    with torch.no_grad():
        return of.model(IDS).logits


def far(one: torch.Tensor, other: torch.Tensor) -> float:
    return (one - other).abs().max().item()


# The policy


def test_a_new_adapter_changes_nothing_and_holds_no_second_copy_of_the_weights():
    base = policy()
    found = with_adapter(base, scale=0)
    assert torch.equal(logits(found), logits(base))
    own = {id(parameter) for parameter in found.model.parameters()}
    assert all(id(parameter) in own for parameter in base.model.parameters())


def test_the_same_seed_gives_the_same_adapter_and_leaves_the_generator_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    one, two, other = (adapted(policy(), LoraSettings(), seed) for seed in (0, 0, 1))
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(p, two.trainable()[name]) for name, p in one.trainable().items())
    assert any(not torch.equal(p, other.trainable()[name]) for name, p in one.trainable().items())


def test_only_the_adapter_is_trained():
    found = with_adapter(policy())
    found.model(IDS).logits.sum().backward()
    learned = {name for name, parameter in found.model.named_parameters() if parameter.grad is not None}
    assert learned == found.trainable().keys()
    assert len(learned) == 2 * 7  # A and B of the seven matrices of the one layer


@pytest.mark.filterwarnings("ignore:fan_in_fan_out")  # peft says that it corrects its own default
@pytest.mark.parametrize("make", [policy, gpt2])
def test_merged_weights_have_the_names_of_the_base_and_give_the_same_logits(make):
    base = make()
    found = with_adapter(base)
    plain = found.frozen_copy()
    assert plain.weights().keys() == base.weights().keys()
    assert far(logits(plain), logits(found)) < 1e-4 < far(logits(base), logits(found))


def test_targets_name_the_modules_that_get_one():
    found = with_adapter(policy(), targets=("q_proj", "v_proj"))
    assert {name.split(".")[4] for name in found.trainable()} == {"q_proj", "v_proj"}


@pytest.mark.parametrize(
    ("targets", "why"),
    [
        (("query",), "no adapter can be put on this model"),
        (("q_proj", "typo"), "the model has no typo"),
        (("q_proj", "lm_head"), "lm_head is no matrix inside of the model"),
        (("q_proj", "embed_tokens"), "model.embed_tokens is no matrix inside of the model"),
    ],
)
def test_targets_that_cannot_have_an_adapter_are_refused(targets, why):
    with pytest.raises(InputError, match=why) as caught:
        adapted(policy(), LoraSettings(targets=targets), seed=0)
    assert caught.value.where == "policy.lora.targets"


def test_there_is_no_dropout_but_in_sft():
    found = with_adapter(policy(), dropout=0.5)
    assert torch.equal(logits(found), logits(found))
    found.model.train()
    assert not torch.equal(logits(found), logits(found))


def test_an_adapter_is_fp32_on_a_base_in_half_precision():
    base = policy()
    found = with_adapter(Policy(base.model.bfloat16(), base.tokenizer))
    assert {parameter.dtype for parameter in found.trainable().values()} == {torch.float32}
    assert {weight.dtype for weight in found.weights().values()} == {torch.bfloat16}
    assert far(logits(found), logits(found.frozen_copy())) < 0.5
    assert found.parameters == base.parameters


def test_the_reference_is_the_base_whatever_the_adapter_learns():
    base = policy()
    before = logits(base)
    found = with_adapter(base)
    assert found.reference() is base
    assert torch.equal(logits(found.reference()), before)


# On disk


def test_a_checkpoint_is_merged_and_peft_reads_the_adapter_in_it(tmp_path):
    base = policy()
    found = with_adapter(base)
    found.save(tmp_path)
    assert far(logits(load_policy(tmp_path, PolicySettings())), logits(found)) < 1e-4
    read = PeftModel.from_pretrained(policy().model, str(tmp_path / "adapter"))
    with torch.no_grad():
        assert far(read(IDS).logits, logits(found)) == 0
    check_proposed(tmp_path)


def test_two_saves_have_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with_adapter(policy()).save(tmp_path / name)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert Path("adapter/adapter_model.safetensors") in files
    assert all((tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes() for file in files)


# The learner


def learner(of: Policy) -> TorchLearner:
    chosen = settings()
    return TorchLearner(of, chosen.learner, chosen.objective, 1.0)


def test_a_state_holds_the_adapter_alone_and_gives_the_merged_weights(tmp_path):
    found = with_adapter(policy())
    one = learner(found)
    one.save(tmp_path)
    expected = dict(one.weights())
    tensors = read_tensors(tmp_path / "learner")
    assert {name.removeprefix("weight/") for name in tensors if name.startswith("weight/")} == found.trainable().keys()
    one.step(batch_of(sampled()), seed=0)
    moved = dict(one.weights())
    again = one.weights_at(tmp_path)
    assert all(torch.equal(weight, again[name]) for name, weight in expected.items())
    assert all(torch.equal(weight, moved[name]) for name, weight in one.weights().items())  # only looked at
    assert any(not torch.equal(weight, moved[name]) for name, weight in expected.items())


def test_the_base_does_not_move():
    base = policy()
    before = {name: weight.clone() for name, weight in base.weights().items()}
    learner(with_adapter(base)).step(batch_of(sampled()), seed=0)
    assert all(torch.equal(weight, before[name]) for name, weight in base.weights().items())


# Supervised steps and preferences


def test_sft_of_a_checkpoint_trains_the_adapter_and_a_tiny_model_is_trained_whole(tmp_path):
    policy().save(tmp_path)
    model = {"kind": "checkpoint", "path": str(tmp_path)}
    found, _ = initial_policy(settings(policy={"model": model, "lora": LORA}), prompts(4))
    before = {name: weight.clone() for name, weight in found.reference().weights().items()}
    SftTrainer(found, prompts(4), SftSettings(steps=2, batch_size=4, warmup=0), seed=0).step(0)
    after = found.weights()
    assert any(not torch.equal(weight, after[name]) for name, weight in before.items())
    assert all(torch.equal(weight, before[name]) for name, weight in found.reference().weights().items())
    assert type(initial_policy(settings(policy={"lora": LORA}), prompts(40))[0]) is Policy


def test_dpo_measures_against_the_base_and_learns():
    found = with_adapter(policy(), scale=0)
    rows = pairs(found)
    trainer = DpoTrainer(found, rows, DpoSettings(steps=20, batch_size=6, lr=1e-2, warmup=0, beta=0.5), seed=0)
    assert trainer.measure(rows)["margin"] == pytest.approx(0, abs=1e-6)
    for step in range(20):
        trainer.step(step)
    assert trainer.measure(rows)["margin"] > 0.1
