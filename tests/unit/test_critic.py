"""The critic: what its values are of, what it learns from, and that neither depends on how the batch is split."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from factories import TINY, gpt2, group, policy, same
from torch import Tensor

from components.config.ppo import CriticSettings, GaeAdvantage
from components.config.training import LearnerSettings
from components.learner.batch import Batch, build_batch
from components.learner.critic import Critic
from components.objectives.gae import credit, explained_variance, gae, terminal_rewards
from components.policy import Policy
from components.types import Completion, Group

WIDE = 10_000
SETTINGS = CriticSettings(lr=1e-2, warmup=2, updates_per_step=1)
PAD = 0


def critic(base: Policy | None = None, tokens: int = WIDE, **changes: Any) -> Critic:
    learner = LearnerSettings().model_copy(update={"micro_batch_tokens": tokens})
    return Critic(base or policy(), SETTINGS.model_copy(update=changes), learner)


def groups(seed: int = 0) -> list[Group]:
    """Eight completions of different lengths behind two prompts of different lengths; each repeats one token, and odd
    ones are right: from the second token on, the reward can be foreseen."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for prompt_ids in ((2, 20, 3), (2, 21, 22, 23, 24, 3)):
        tokens = [torch.randint(30, 36, (1,), generator=generator).tolist() * length for length in (1, 3, 5, 8)]
        found.append(group([float(ids[0] % 2) for ids in tokens], prompt_ids=prompt_ids, tokens=tokens))
    return found


def batch(seed: int = 0) -> Batch:
    return build_batch(groups(seed), PAD)


def rewards(batch: Batch) -> Tensor:
    return (batch.input_ids[:, -batch.responses] % 2).float()


def targets(batch: Batch, values: Tensor) -> Tensor:
    return gae(terminal_rewards(rewards(batch), batch.response_mask), values, batch.response_mask, 1.0, 1.0).returns


def train(tested: Critic, steps: int, start: int = 0) -> list[dict[str, float]]:
    found = []
    for step in range(start, start + steps):
        drawn = batch(step)
        values = tested.values(drawn)
        found.append(tested.step(drawn, targets(drawn, values), values))
    return found


def weights(tested: Critic) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in tested._model.named_parameters()}


# Values


def test_a_new_critic_is_the_constant_0_with_the_policys_backbone():
    base = policy()
    tested = critic(base)
    assert not tested.values(batch()).any()
    own = {name.removeprefix("backbone."): p for name, p in weights(tested).items() if "backbone" in name}
    assert same(own, {name.removeprefix("model."): p for name, p in base.weights().items()})
    assert explained_variance(targets(batch(), torch.zeros(8, 8)), tested.values(batch()), batch().response_mask) == 0


def test_learning_does_not_change_the_policy():
    base = policy()
    train(critic(base), 3)
    assert same(base.weights(), policy().weights())


@pytest.mark.parametrize("base", [policy, gpt2])
def test_a_value_is_of_the_state_before_its_token(base):
    tested = critic(base())
    train(tested, 3)
    one = batch()
    plain = tested.values(one)
    changed = one.input_ids.clone()
    at = 2  # third token of every response
    changed[:, -one.responses + at] += 1
    found = tested.values(replace(one, input_ids=changed))
    assert torch.equal(found[:, : at + 1], plain[:, : at + 1])
    later = one.response_mask[:, at + 1 :]
    assert not torch.isclose(found[:, at + 1 :][later], plain[:, at + 1 :][later]).any()


def test_the_first_value_depends_on_the_prompt_and_on_nothing_else():
    tested = critic()
    train(tested, 3)
    first = tested.values(batch())[:, 0]
    by_prompt = [first[batch().group == n] for n in (0, 1)]
    assert all(torch.allclose(values, values[0].expand(4), atol=1e-6) for values in by_prompt)
    assert not torch.isclose(by_prompt[0][0], by_prompt[1][0])


@pytest.mark.parametrize("tokens", [1, 30, 60])
def test_values_and_updates_do_not_depend_on_the_split_into_micro_batches(tokens):
    whole, split = critic(clip=0.1), critic(clip=0.1, tokens=tokens)
    expected, found = train(whole, 3), train(split, 3)
    assert found == [
        {name: pytest.approx(value, rel=1e-3, abs=1e-6) for name, value in row.items()} for row in expected
    ]
    mask = batch().response_mask
    assert torch.allclose(split.values(batch())[mask], whole.values(batch())[mask], atol=1e-4)


def test_activations_that_are_computed_again_change_no_value_and_no_update():
    def updated(again: bool) -> tuple[dict[str, float], Tensor, int]:
        own = Critic(policy(), SETTINGS, LearnerSettings(activation_checkpointing=again))
        batch, passes = build_batch(groups(), PAD), []
        own._model.backbone.layers[0].self_attn.register_forward_hook(lambda *_: passes.append(1))
        before = own.values(batch)
        passes.clear()
        return own.step(batch, torch.ones_like(before), before), own.values(batch), len(passes)

    (kept, values, once), (again, same, twice) = updated(again=False), updated(again=True)
    assert kept == again
    assert torch.equal(values, same)
    assert twice == once + 1  # one more in the update, and one of `values` in each


def test_padding_tokens_do_not_matter():
    tested = critic()
    train(tested, 2)
    one = batch()
    other = replace(one, input_ids=torch.where(one.attention_mask.bool(), one.input_ids, 77))
    assert torch.equal(tested.values(one)[one.response_mask], tested.values(other)[one.response_mask])


# Learning


def test_the_first_loss_is_half_the_mean_squared_return_and_the_head_moves_first():
    tested, drawn = critic(), batch()
    returns = targets(drawn, torch.zeros(drawn.response_mask.shape))
    before = weights(tested)
    found = tested.step(drawn, returns, torch.zeros_like(returns))
    assert found["value_loss"] == pytest.approx(returns[drawn.response_mask].square().mean().item() / 2)
    moved = [name for name, p in weights(tested).items() if not torch.equal(p, before[name])]
    assert moved == ["head.weight", "head.bias"]


def test_pre_training_explains_more_and_more_of_batches_that_the_critic_has_not_seen():
    tested = critic()

    def explained(seed: int) -> float:
        drawn = batch(seed)
        values = tested.values(drawn)
        return explained_variance(targets(drawn, values), values, drawn.response_mask)

    before = sum(map(explained, range(500, 505))) / 5
    losses = [row["value_loss"] for row in train(tested, 60)]
    after = sum(map(explained, range(500, 505))) / 5
    assert before == 0
    assert after > 0.3
    assert sum(losses[-10:]) < sum(losses[:10]) / 2


def test_more_updates_a_step_fit_the_batch_better():
    def loss_after(updates: int) -> float:
        tested, drawn = critic(updates_per_step=updates), batch()
        values = tested.values(drawn)
        returns = targets(drawn, values)
        tested.step(drawn, returns, values)
        return (tested.values(drawn) - returns)[drawn.response_mask].square().mean().item()

    assert loss_after(6) < loss_after(2) < loss_after(1)


def test_a_clip_holds_values_near_what_they_were():
    def moved(clip: float | None) -> float:
        tested, drawn = critic(updates_per_step=20, clip=clip), batch()
        values = tested.values(drawn)
        tested.step(drawn, torch.full_like(values, 5.0), values)
        return (tested.values(drawn) - values)[drawn.response_mask].abs().max().item()

    assert moved(0.1) < moved(None) / 2


@pytest.mark.parametrize("junk", [math.nan, math.inf])
def test_what_stands_at_observations_and_padding_does_not_matter(junk):
    drawn = batch()
    mask = drawn.response_mask.clone()
    mask[:, 1] = False  # a tool wrote the second token
    drawn = replace(drawn, response_mask=mask)
    returns = torch.where(mask, 1.0, 0.0)
    clean, spoilt = critic(), critic()
    for _ in range(2):
        clean.step(drawn, returns, torch.zeros_like(returns))
        spoilt.step(drawn, torch.where(mask, returns, junk), torch.where(mask, 0.0, junk))
    assert same(weights(spoilt), weights(clean))


def test_a_batch_without_a_sampled_token_changes_nothing():
    tested, drawn = critic(), build_batch([group([None, None])], PAD)
    values = tested.values(drawn)
    found = credit(torch.zeros(2), torch.zeros(2).bool(), drawn.group, drawn.response_mask, values, GaeAdvantage())
    assert tested.step(drawn, found.returns, values) == {}
    assert same(weights(tested), weights(critic()))


def test_a_gradient_that_is_not_finite_changes_nothing_and_is_counted():
    tested, drawn = critic(), batch()
    values = tested.values(drawn)
    found = tested.step(drawn, torch.full_like(values, math.inf), values)
    assert found["critic_nonfinite"] == 1
    assert same(weights(tested), weights(critic()))


def test_the_rate_warms_up():
    tested = critic(warmup=4)
    rates = []
    for step in range(5):
        train(tested, 1, start=step)
        rates.append(tested._optimizer._adamw.param_groups[0]["lr"])
    assert rates == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01])


def test_observations_are_read_but_get_no_value_target():
    ids = (30, 31, 32, 33, 34)
    sampled = (True, True, False, False, True)

    def completion(observation: Sequence[int]) -> Completion:
        return Completion((*ids[:2], *observation, ids[4]), (0.0,) * 5, "stop", "", sampled=sampled)

    one = group([1.0, 0.0])
    pair = replace(one, completions=(completion((32, 33)), completion((50, 51))))
    drawn = build_batch([pair], PAD)
    assert drawn.response_mask.tolist() == [list(sampled)] * 2
    tested = critic()
    train(tested, 3)
    values = tested.values(drawn)
    assert torch.allclose(values[0, :2], values[1, :2], atol=1e-6)
    assert not torch.isclose(values[0, 4], values[1, 4])  # the state after the observation is another one


# Saving


@pytest.mark.parametrize("stop", [0, 2])
def test_resuming_equals_not_stopping_to_the_bit(tmp_path, stop):
    whole, begun, resumed = critic(), critic(), critic()
    expected = train(whole, 4)
    train(begun, stop)
    begun.save(tmp_path)
    resumed.load(tmp_path)
    assert train(resumed, 4 - stop, start=stop) == expected[stop:]
    assert same(weights(resumed), weights(whole))


def test_another_models_state_is_refused(tmp_path):
    critic(gpt2()).save(tmp_path)
    with pytest.raises(ValueError, match="belongs to another model"):
        critic().load(tmp_path)


def test_the_head_is_as_wide_as_the_backbone():
    assert weights(critic())["head.weight"].shape == (1, TINY.hidden_size)
