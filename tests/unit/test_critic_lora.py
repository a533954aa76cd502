"""PPO's critic of a policy with an adapter: what it learns, what it shares, what it saves."""

from __future__ import annotations

import torch
from factories import policy, with_adapter
from test_learner import batch_of, sampled

from components.config.ppo import CriticSettings
from components.config.training import LearnerSettings
from components.learner.critic import Critic
from components.learner.state import StoredWeights
from components.policy import Policy


def with_critic(base: Policy, *, whole: bool = False) -> Critic:
    own = base if whole else with_adapter(base, scale=0)
    return Critic(own, CriticSettings(lr=1e-2, warmup=0), LearnerSettings(micro_batch_tokens=1000))


def taught(critic: Critic) -> torch.Tensor:
    """Values after an update towards 1 everywhere."""
    batch = batch_of(sampled())
    critic.step(batch, torch.ones_like(batch.advantages), critic.values(batch))
    return critic.values(batch)


def test_a_critic_learns_an_adapter_of_its_own_on_the_base_of_the_policys():
    base = policy()
    before = {name: weight.clone() for name, weight in base.weights().items()}
    actor = with_adapter(base)
    adapter = {name: weight.clone() for name, weight in actor.trainable().items()}
    critic = with_critic(base)
    start = {name: weight.clone() for name, weight in critic._model.trainable().items()}
    assert taught(critic).any()
    assert all(torch.equal(weight, before[name]) for name, weight in base.weights().items())
    assert all(torch.equal(weight, adapter[name]) for name, weight in actor.trainable().items())
    taught(critic)  # the head begins at 0, and lets a gradient through from the second update on
    moved = {name for name, weight in critic._model.trainable().items() if not torch.equal(weight, start[name])}
    assert {"head.weight", "head.bias"} < moved
    assert any(".lora_B." in name for name in moved)


def test_a_critic_with_an_adapter_holds_no_second_copy_of_the_base(tmp_path):
    base = policy()
    shared = {id(parameter) for parameter in base.model.parameters()}
    critic = with_critic(base)
    assert {id(p) for p in critic._model.backbone.parameters() if not p.requires_grad} <= shared
    taught(critic)
    critic.save(tmp_path)
    names = set(StoredWeights(tmp_path / "critic"))
    assert all(".lora_" in name or name.startswith("head.") for name in names)
    assert len(names) == 2 * 7 + 2


def test_before_it_learns_a_critic_with_an_adapter_reads_what_the_whole_one_reads():
    batch, heads = batch_of(sampled()), torch.linspace(-1, 1, 32)
    found = []
    for critic in (with_critic(policy()), with_critic(policy(), whole=True)):
        torch.nn.init.constant_(critic._model.head.bias, 0.5)
        critic._model.head.weight.data[0] = heads
        found.append(critic.values(batch))
    assert torch.equal(*found)
