"""From scored groups to the advantage of every token: what the settings choose reaches the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from factories import group, policy, settings
from torch import Tensor

from components.config.objective import ObjectiveSettings
from components.config.training import LearnerSettings
from components.learner.batch import Batch, build_batch
from components.learner.build import build_learner
from components.learner.critic import Critic
from components.objectives.controllers import Coefficients
from components.training.credit import Credit
from components.types import Group

TOKENS = [[30, 1], [31, 32, 33, 1], [34] * 9, [35, 1]]


class FixedLearner:
    """Reports given log-probabilities of the response tokens."""

    def __init__(self, logp: Tensor, beta: float = 0.0) -> None:
        self._logp, self.coefficients = logp, Coefficients(kl=beta, entropy=0.0)

    def logprobs(self, batch: Batch, temperature: float | None = None) -> Tensor:
        return self._logp


def advantages(groups: Sequence[Group], objective: dict[str, Any] | None = None) -> Tensor:
    """The advantage of each completion, in the groups' order."""
    batch = build_batch(groups, pad_id=0)
    chosen = ObjectiveSettings.model_validate(objective or {})
    batch = Credit(None, None, None, chosen).assign(batch, groups, step=0).batch
    found = torch.zeros(len(groups), max(len(g.scores) for g in groups))
    found[batch.group, batch.member] = batch.advantages.sum(1) / batch.response_mask.sum(1).clamp(min=1)
    return found


def test_every_token_of_a_completion_has_its_advantage_and_masked_ones_have_none():
    groups = [group([1.0, 0.0, None, 0.0], tokens=TOKENS)]
    batch = build_batch(groups, pad_id=0)
    batch = Credit(None, None, None, ObjectiveSettings()).assign(batch, groups, step=0).batch
    by_member = {int(m): row for m, row in zip(batch.member, batch.advantages, strict=True)}
    assert by_member[0].tolist() == pytest.approx([1.41421] * 2 + [0.0] * 7, abs=1e-4)
    assert by_member[1].tolist() == pytest.approx([-0.70711] * 4 + [0.0] * 5, abs=1e-4)
    assert by_member[2].tolist() == [0.0] * 9


def test_a_cap_bounds_advantages_and_says_how_many_it_cut():
    groups = [group([1.0] + [0.0] * 127)]
    batch = build_batch(groups, pad_id=0)
    capped = Credit(None, None, None, ObjectiveSettings(advantage_cap=4.0)).assign(batch, groups, step=0)
    assert capped.batch.advantages.max().item() == 4.0
    assert capped.signals["advantage_capped"] == pytest.approx(1 / 128)
    assert advantages(groups).max().item() == pytest.approx(11.269, abs=1e-3)


# KL


def charged(beta: float, drift: Sequence[float]) -> Tensor:
    """Advantages of an all-right group whose completions are this far (nats) from the reference."""
    groups = [group([1.0] * 4, tokens=[[30, 1]] * 4)]
    batch = build_batch(groups, pad_id=0)
    old = torch.full(batch.response_mask.shape, -1.0)
    batch = replace(batch, ref_logp=old - torch.tensor(drift)[batch.member][:, None] / 2)
    chosen = ObjectiveSettings.model_validate({"kl": {"kind": "k1_reward", "beta": beta}})
    found = Credit(FixedLearner(old, beta), None, None, chosen).assign(batch, groups, step=0).batch
    return found.advantages[found.member.argsort(), 0]


@pytest.mark.parametrize("beta", [0.001, 0.1])
def test_kl_in_the_reward_makes_advantages_out_of_nothing_but_noise(beta):
    """The worked example: an all-right group gets a full-size gradient, whatever beta is."""
    assert charged(beta, [3, 5, 4, 8]).tolist() == pytest.approx([1.069, 0.0, 0.5345, -1.6036], abs=2e-3)


@pytest.mark.parametrize("kl", [None, {"kind": "k2", "beta": 0.5}, {"kind": "k3_ratio", "beta": 10.0}])
def test_kl_as_a_loss_leaves_the_advantages_as_they_are_to_the_bit(kl):
    groups = [group([1.0, 0.0, 0.0, 1.0], tokens=TOKENS)]
    assert torch.equal(advantages(groups, {"kl": kl}), advantages(groups))


def test_kl_is_charged_to_the_whole_completion_and_only_to_those_that_count():
    groups = [group([1.0, None, 1.0], tokens=[[30, 1], [31, 1], [32, 33, 34, 1]])]
    batch = build_batch(groups, pad_id=0)
    batch = replace(batch, ref_logp=torch.full(batch.response_mask.shape, -2.0))
    learner = FixedLearner(torch.full(batch.response_mask.shape, -1.0), beta=0.1)
    chosen = ObjectiveSettings.model_validate(
        {"kl": {"kind": "k1_reward", "beta": 0.1}, "advantage": {"kind": "grpo", "std": "none"}}
    )
    found = Credit(learner, None, None, chosen).assign(batch, groups, step=0).batch
    assert found.advantages[found.member.argsort(), 0].tolist() == pytest.approx([0.1, 0.0, -0.1])
    assert torch.equal(found.old_logp, learner.logprobs(batch))


# The critic


def test_with_a_critic_the_advantages_are_its_own_and_it_learns_from_the_batch():
    chosen = settings(objective={"advantage": {"kind": "gae", "fallback": None, "whiten": False}})
    groups = [group([1.0, 0.0, None, 1.0], tokens=TOKENS)]
    batch = build_batch(groups, pad_id=0)
    critic = Critic(policy(), chosen.learner.critic, LearnerSettings(micro_batch_tokens=1000))
    before = critic.values(batch)
    credited = Credit(None, critic, None, chosen.objective).assign(batch, groups, step=0)
    accuracy = torch.tensor([1.0, 0.0, 0.0, 1.0])[batch.member][:, None].expand(before.shape)
    expected = torch.where(batch.response_mask, accuracy - before, 0.0)
    assert torch.allclose(credited.batch.advantages, expected, atol=1e-6)
    assert not torch.equal(critic.values(batch), before)
    assert {"explained_variance", "value_loss", "critic_grad_norm"} <= credited.signals.keys()


# Bad input


@pytest.mark.parametrize(
    "groups",
    [
        [group([1.0])],
        [group([None, None])],
        [group([1.0, None])],
        [group([1.0, 0.0]), group([None])],
        [group([1.0, 0.0], tokens=[[], [30, 1]])],
        [group([1.0, 0.0], tokens=[[], []])],
        [group([]), group([1.0, 0.0])],
    ],
    ids=["one", "unscorable", "one scorable", "ragged", "zero length", "all zero length", "empty"],
)
@pytest.mark.parametrize("kind", ["grpo", "batch_std", "leave_one_out", "maxrl", "gdpo"])
def test_odd_groups_give_finite_advantages_and_a_finite_loss(groups, kind):
    chosen = settings(objective={"advantage": {"kind": kind}}, learner={"updates_per_step": 1})
    micro = policy()
    learner = build_learner(micro, chosen)
    batch = build_batch(groups, pad_id=0)
    batch, _ = Credit(learner, None, micro, chosen.objective).assign(batch, groups, step=0)
    assert batch.advantages.isfinite().all()
    signals = learner.step(batch, seed=0)
    assert all(torch.tensor(value).isfinite() for value in signals.values())
    assert signals["nonfinite"] == 0
