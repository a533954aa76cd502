"""Nothing replaced on either side: TRL's trainer and our learner on one model, down to the gradient of every weight."""

from __future__ import annotations

import copy
import random

import pytest
import torch
from cases import settings
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor, nn
from trl_loss import END, PAD, small_model, trl_gradients

from components.config.objective import ObjectiveSettings
from components.config.policy import LoraSettings
from components.config.training import LearnerSettings
from components.learner.batch import build_batch
from components.learner.torch_learner import TorchLearner
from components.policy import Policy
from components.policy.lora import AdaptedPolicy, adapted
from components.training.credit import Credit
from components.types import Completion, Group, Prompt, Score

WORDS, TEMPERATURE = 24, 0.8


def scored_groups(seed: int) -> list[Group]:
    """Ragged prompts and completions of random words, and a sampler that did not agree with the model."""
    draw = random.Random(seed)

    def words(shortest: int, longest: int) -> tuple[int, ...]:
        return tuple(draw.randrange(2, WORDS) for _ in range(draw.randint(shortest, longest)))

    def completion() -> Completion:
        tokens = (*words(1, 8), END)
        return Completion(tokens, tuple(draw.gauss(-3, 0.5) for _ in tokens), "stop", "")

    return [
        Group(
            Prompt(str(number), "", "", ""),
            words(1, 6),
            tuple(completion() for _ in range(4)),
            tuple(Score(draw.random()) for _ in range(4)),
        )
        for number in range(3)
    ]


def our_gradients(policy: Policy, groups: list[Group], objective: ObjectiveSettings) -> dict[str, Tensor]:
    """Of every weight, as the learner's step leaves them behind; in micro-batches of a few rows."""
    batch = build_batch(groups, PAD)
    learner = TorchLearner(policy, LearnerSettings(grad_clip=1e9, micro_batch_tokens=64), objective, TEMPERATURE)
    learner.step(Credit(learner, None, policy, objective).assign(batch, groups, step=0).batch, seed=0)
    return {name: weight.grad for name, weight in policy.trainable().items()}


@pytest.mark.parametrize(
    ("ours", "trl"),
    [
        ({"aggregation": {"kind": "sequence_mean"}}, {"loss_type": "grpo"}),
        (
            {"correction": {"kind": "tis_token", "cap": 1.5}},
            {
                "sampler": True,
                "vllm_importance_sampling_mode": "token_truncate",
                "vllm_importance_sampling_clip_max": 1.5,
            },
        ),
        (
            {"advantage": {"kind": "grpo", "std": "none"}, "aggregation": {"kind": "fixed", "tokens": 9}},
            {"loss_type": "dr_grpo", "scale_rewards": "none", "max_completion_length": 9},
        ),
    ],
    ids=["grpo", "dapo with tis", "dr_grpo"],
)
def test_our_learner_gives_every_weight_the_gradient_that_trls_trainer_gives_it(ours, trl):
    model, groups = small_model(WORDS, width=16, layers=2), scored_groups(seed=1)
    policy = Policy(copy.deepcopy(model), None)
    found = our_gradients(policy, groups, settings(**ours))
    expected = trl_gradients(model, groups, micro_batches=3, temperature=TEMPERATURE, **trl)
    assert found.keys() == expected.keys()
    assert max(gradient.abs().max() for gradient in expected.values()) > 0.01
    for name, gradient in expected.items():
        assert torch.allclose(found[name], gradient, rtol=0, atol=1e-5), name


def with_adapters(model: nn.Module) -> tuple[AdaptedPolicy, PeftModel]:
    """One adapter that has learned something, on copies of one model: ours, and as TRL takes it from `peft`."""
    ours = adapted(Policy(copy.deepcopy(model), None), LoraSettings(rank=4, alpha=8), seed=0)
    assert isinstance(ours, AdaptedPolicy)
    trls = get_peft_model(copy.deepcopy(model), LoraConfig(r=4, lora_alpha=8, target_modules="all-linear"))
    theirs = dict(trls.named_parameters())
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, parameter in ours.trainable().items():
            parameter.copy_(0.2 * torch.randn(parameter.shape, generator=generator))
            theirs[f"base_model.model.{name}"].copy_(parameter)
    return ours, trls


def test_our_learner_gives_an_adapter_the_gradient_that_trl_gives_it_with_peft():
    model, groups = small_model(WORDS, width=16, layers=2), scored_groups(seed=1)
    policy, trls = with_adapters(model)
    found = our_gradients(policy, groups, settings(aggregation={"kind": "sequence_mean"}))
    every = trl_gradients(trls, groups, micro_batches=3, temperature=TEMPERATURE, loss_type="grpo")
    expected = {name: gradient for name, gradient in every.items() if gradient is not None}
    assert {f"base_model.model.{name}" for name in found} == expected.keys()
    assert max(gradient.abs().max() for gradient in expected.values()) > 0.01
    for name, gradient in found.items():
        assert torch.allclose(gradient, expected[f"base_model.model.{name}"], rtol=0, atol=1e-5), name
