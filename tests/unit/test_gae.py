"""Advantages from a critic, against numbers worked by hand and what observation tokens must not change."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor

from components.config.ppo import CriticSettings, GaeAdvantage
from components.objectives.gae import (
    adaptive_lambda,
    credit,
    explained_variance,
    gae,
    terminal_rewards,
    value_loss,
    value_weights,
    whiten,
)

VALUES = torch.tensor([[0.5, 0.6, 0.7, 0.8]])
ALL = torch.ones(1, 4, dtype=torch.bool)
END = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
NUMBERS = st.floats(-2, 2, width=32)


def tensors(seed: int, rows: int = 4, width: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    """Random rewards and values, and a mask with holes and (in the last row) nothing sampled."""
    generator = torch.Generator().manual_seed(seed)
    rewards, values = torch.randn(2, rows, width, generator=generator)
    mask = torch.rand(rows, width, generator=generator) < 0.6
    mask[-1] = False
    return rewards, values, mask


# Advantages


@pytest.mark.parametrize(
    ("lam", "advantages"),
    [
        (0.0, [0.1, 0.1, 0.1, 0.2]),
        (0.5, [0.2, 0.2, 0.2, 0.2]),
        (0.95, [0.456725, 0.3755, 0.29, 0.2]),
        (1.0, [0.5, 0.4, 0.3, 0.2]),
    ],
)
def test_worked_advantages_for_a_reward_of_1_at_the_end(lam, advantages):
    found = gae(END, VALUES, ALL, 1.0, lam)
    assert found.advantages[0].tolist() == pytest.approx(advantages, abs=1e-6)
    assert torch.equal(found.returns, found.advantages + VALUES)


def test_with_lambda_1_the_return_is_the_discounted_sum_of_rewards_whatever_the_values():
    rewards = torch.tensor([[1.0, 0.0, 2.0]])
    found = gae(rewards, torch.randn(1, 3), ALL[:, :3], 0.5, 1.0)
    assert found.returns[0].tolist() == pytest.approx([1.5, 1.0, 2.0])


def test_each_row_may_have_a_lambda_of_its_own():
    lambdas = torch.tensor([0.0, 0.95])
    found = gae(END.repeat(2, 1), VALUES.repeat(2, 1), ALL.repeat(2, 1), 1.0, lambdas).advantages
    assert found[:, 0].tolist() == pytest.approx([0.1, 0.456725])


@given(st.integers(0, 2**31), st.integers(0, 5), st.floats(0, 1), st.floats(0, 1))
def test_observation_tokens_between_actions_change_nothing(seed, inserted, gamma, lam):
    rewards, values, _ = tensors(seed)
    whole = torch.ones_like(values, dtype=torch.bool)
    plain = gae(rewards, values, whole, gamma, lam)

    def insert(x: Tensor, what: float) -> Tensor:
        return torch.cat([x[:, :3], torch.full((len(x), inserted), what), x[:, 3:]], dim=1)

    mask = insert(whole.float(), 0.0).bool()
    skipped = gae(insert(rewards, float("nan")), insert(values, float("inf")), mask, gamma, lam)
    for a, b in zip(skipped, plain, strict=True):
        assert torch.equal(a[mask].reshape(b.shape), b)
        assert not a[~mask].any()


@given(st.integers(0, 2**31), st.floats(0, 1))
def test_a_perfect_critic_leaves_no_advantage(seed, lam):
    _, _, mask = tensors(seed)
    reward = torch.tensor([1.0, 0.0, 0.5, 1.0])
    values = reward[:, None].expand(mask.shape)
    found = gae(terminal_rewards(reward, mask), values, mask, 1.0, lam)
    assert not found.advantages.any()
    assert torch.equal(found.returns, torch.where(mask, values, 0.0))


@given(st.integers(0, 2**31), st.integers(0, 4), st.floats(0, 1))
def test_padding_columns_and_the_order_of_the_rows_change_nothing(seed, padding, lam):
    rewards, values, mask = tensors(seed)
    plain = gae(rewards, values, mask, 0.9, lam)
    order = torch.randperm(len(mask), generator=torch.Generator().manual_seed(seed))
    wide = [torch.nn.functional.pad(x[order], (0, padding)) for x in (rewards, values, mask)]
    for a, b in zip(gae(*wide, 0.9, lam), plain, strict=True):
        assert torch.equal(a[:, : mask.shape[1]], b[order])


@pytest.mark.parametrize(
    ("mask", "at"),
    [([1, 1, 1, 0], 2), ([1, 0, 0, 0], 0), ([1, 1, 0, 1], 3), ([1, 0, 1, 0], 2), ([0, 0, 0, 0], None)],
)
def test_the_reward_stands_at_the_last_sampled_token_and_not_at_padding_or_observations(mask, at):
    found = terminal_rewards(torch.tensor([0.5]), torch.tensor([mask]).bool())[0]
    assert found.nonzero().flatten().tolist() == ([] if at is None else [at])
    assert found.sum().item() == (0 if at is None else 0.5)


@pytest.mark.parametrize(("length", "lam"), [(20, 0.0), (10, 0.0), (100, 0.8), (1000, 0.98), (10000, 0.998), (0, 0.0)])
def test_worked_adaptive_lambdas_are_never_negative(length, lam):
    assert adaptive_lambda(torch.tensor([length]), 0.05).item() == pytest.approx(lam, abs=1e-7)


# Whitening


@given(st.lists(NUMBERS, min_size=2, max_size=12), st.integers(0, 2**31))
def test_whitened_advantages_have_mean_0_and_variance_1_over_the_sampled_tokens(numbers, seed):
    advantages = torch.tensor([numbers])
    mask = torch.rand(advantages.shape, generator=torch.Generator().manual_seed(seed)) < 0.7
    found = whiten(torch.where(mask, advantages, torch.nan), mask)
    assert not found[~mask].any()
    if len(set(advantages[mask].tolist())) > 1 and advantages[mask].std() > 1e-2:
        assert found[mask].mean().item() == pytest.approx(0, abs=1e-4)
        assert found[mask].var(correction=0).item() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (2, 0)])
def test_equal_advantages_or_none_whiten_to_exactly_0(shape):
    for mask in (torch.ones(shape, dtype=torch.bool), torch.zeros(shape, dtype=torch.bool)):
        assert torch.equal(whiten(torch.full(shape, 0.1), mask), torch.zeros(shape))


def test_whitening_and_the_policys_lambda_do_not_change_the_returns():
    rewards, values, mask = tensors(0)
    groups = torch.arange(len(mask))

    def returns(**changes: object) -> Tensor:
        return credit(rewards[:, 0], mask.any(1), groups, mask, values, GaeAdvantage(**changes)).returns

    plain = returns(whiten=False)
    assert all(torch.equal(returns(**c), plain) for c in ({}, {"policy_lambda": 0.5}, {"policy_lambda": "adaptive"}))
    assert not torch.equal(returns(critic_lambda=0.5), plain)


# The critic's fit


@pytest.mark.parametrize(
    ("returns", "values", "found"),
    [
        ([1, 0, 1, 0], [0.8, 0.2, 0.6, 0.4], 0.6),
        ([1, 0, 1, 0], [0.2, 0.8, 0.4, 0.6], -1.0),
        ([1, 0, 1, 0], [1, 0, 1, 0], 1.0),
        ([1, 0, 1, 0], [0.3, 0.3, 0.3, 0.3], 0.0),
        ([1, 1, 1, 1], [0.9, 1, 1.1, 1], 0.0),
        ([], [], 0.0),
    ],
)
def test_worked_explained_variances(returns, values, found):
    r, v = (torch.tensor([x], dtype=torch.float32).reshape(1, -1) for x in (returns, values))
    assert explained_variance(r, v, torch.ones_like(r, dtype=torch.bool)) == pytest.approx(found, abs=1e-6)


def test_explained_variance_is_of_the_sampled_tokens():
    returns, values = torch.tensor([[1.0, 0.0, torch.nan]]), torch.tensor([[0.8, 0.2, torch.inf]])
    assert explained_variance(returns, values, torch.tensor([[True, True, False]])) == pytest.approx(0.84)


@pytest.mark.parametrize(
    ("value", "old", "clip", "loss"),
    [
        (0.9, 0.2, None, 0.005),  # (0.9 - 1)^2 / 2
        (0.9, 0.2, 0.2, 0.18),  # the clipped value is 0.4, and worse
        (0.3, 0.2, 0.2, 0.245),  # within the clip
        (0.1, 0.8, 0.2, 0.405),  # moved away from the return: the value itself is worse than the clipped 0.6
    ],
)
def test_worked_value_losses_for_a_return_of_1(value, old, clip, loss):
    v, r, o, w = (torch.tensor([[x]]) for x in (value, 1.0, old, 1.0))
    assert value_loss(v, r, o, w, clip).item() == pytest.approx(loss)


def test_a_value_that_moved_too_far_towards_its_return_has_no_gradient():
    value = torch.tensor([[0.9]], requires_grad=True)
    value_loss(value, torch.ones(1, 1), torch.tensor([[0.2]]), torch.ones(1, 1), 0.2).backward()
    assert value.grad is not None and not value.grad.any()


@pytest.mark.parametrize("clip", [None, 0.2])
@pytest.mark.parametrize("sizes", [(4,), (1, 1, 1, 1), (2, 2), (3, 1)])
def test_the_gradient_is_the_same_under_any_split_and_masked_positions_are_not_read(clip, sizes):
    returns, values, mask = tensors(3)
    old = values + 0.3
    weights = value_weights(mask)

    def gradient(parts: tuple[int, ...], junk: float) -> Tensor:
        leaf = values.clone().requires_grad_(True)
        spoilt = torch.where(mask, leaf, junk)
        tensors_ = (spoilt, torch.where(mask, returns, junk), torch.where(mask, old, junk), weights)
        for part in zip(*(x.split(parts) for x in tensors_), strict=True):
            value_loss(*part, clip).backward(retain_graph=True)
        assert leaf.grad is not None
        return leaf.grad

    whole = gradient((4,), 0.0)
    assert whole.any()
    assert torch.allclose(gradient(sizes, float("nan")), whole, atol=1e-7)


# Credit: all of it together


def rows(*rewards: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rewards, which are there, group numbers (pairs) and a mask of three sampled tokens each."""
    count = len(rewards)
    mask = torch.ones(count, 3, dtype=torch.bool)
    return torch.tensor(rewards), mask.any(1), torch.arange(count) // 2, mask


GOOD = torch.tensor([0.8, 0.2, 0.6, 0.4])[:, None].expand(4, 3)
BAD = 1 - GOOD
PLAIN = GaeAdvantage(whiten=False)


def test_a_critic_that_explains_something_is_the_baseline():
    found = credit(*rows(1, 0, 1, 0), GOOD, PLAIN)
    assert found.metrics == {"explained_variance": pytest.approx(0.6), "critic_fallback": 0.0}
    assert found.advantages[:, 0].tolist() == pytest.approx([0.2, -0.2, 0.4, -0.4])


@pytest.mark.parametrize("values", [BAD, torch.zeros(4, 3), torch.full((4, 3), 7.0)])
@pytest.mark.parametrize(
    ("fallback", "advantages"),
    [("batch", [0.25, 0.25, 0.25, -0.75]), ("group", [0.0, 0.0, 0.5, -0.5])],
)
def test_a_critic_no_better_than_a_constant_is_replaced_by_the_mean_reward(values, fallback, advantages):
    found = credit(*rows(1, 1, 1, 0), values, PLAIN.model_copy(update={"fallback": fallback}))
    assert found.metrics["critic_fallback"] == 1.0
    assert found.metrics["explained_variance"] <= 0
    assert torch.allclose(found.advantages, torch.tensor(advantages)[:, None].expand(4, 3))
    assert torch.allclose(found.returns, torch.tensor([1.0, 1, 1, 0])[:, None].expand(4, 3))  # it learns on


def test_without_the_fallback_the_critic_is_trusted_whatever_it_explains():
    found = credit(*rows(1, 0, 1, 0), BAD, PLAIN.model_copy(update={"fallback": None}))
    assert (found.metrics["critic_fallback"], found.metrics["explained_variance"]) == (0.0, pytest.approx(-1.0))
    assert found.advantages[:, 0].tolist() == pytest.approx([0.8, -0.8, 0.6, -0.6])


def test_explained_variance_is_measured_on_monte_carlo_returns_whatever_the_critics_lambda():
    found = credit(*rows(1, 0, 1, 0), BAD, PLAIN.model_copy(update={"critic_lambda": 0.0}))
    assert found.metrics["explained_variance"] == pytest.approx(-1.0)


def test_the_adaptive_lambda_counts_sampled_tokens_only():
    mask = torch.ones(1, 40, dtype=torch.bool)
    mask[:, 5:25] = False
    adaptive = PLAIN.model_copy(update={"policy_lambda": "adaptive", "fallback": None})
    fixed = PLAIN.model_copy(update={"policy_lambda": 0.0, "fallback": None})  # 20 sampled tokens
    inputs = (
        torch.ones(1),
        mask[:, 0],
        torch.zeros(1),
        mask,
        torch.rand(1, 40, generator=torch.Generator().manual_seed(0)),
    )
    assert torch.equal(credit(*inputs, adaptive).advantages, credit(*inputs, fixed).advantages)


def test_a_completion_whose_tokens_are_filtered_out_still_counts_in_the_mean_reward():
    rewards, scorable, groups, mask = rows(1, 1, 1, 0)
    mask[3] = False
    found = credit(rewards, scorable, groups, mask, BAD * 0, PLAIN)
    assert found.advantages[:, 0].tolist() == [0.25, 0.25, 0.25, 0.0]


@pytest.mark.parametrize("fallback", ["batch", "group", None])
@pytest.mark.parametrize("white", [True, False])
@pytest.mark.parametrize("lam", [1.0, "adaptive"])
def test_rows_without_a_sampled_token_stay_0_and_change_nothing_for_the_others(fallback, white, lam):
    settings = GaeAdvantage(fallback=fallback, whiten=white, policy_lambda=lam)
    rewards, scorable, groups, mask = rows(1, 0, 1, 0)
    plain = credit(rewards, scorable, groups, mask, BAD, settings)
    junk = torch.full((1, 3), torch.nan)
    found = credit(
        torch.cat([rewards, junk[0, :1]]),
        torch.cat([scorable, torch.zeros(1, dtype=torch.bool)]),
        torch.cat([groups, groups[-1:]]),
        torch.cat([mask, torch.zeros(1, 3, dtype=torch.bool)]),
        torch.cat([BAD, junk]),
        settings,
    )
    assert torch.equal(found.advantages[:4], plain.advantages)
    assert not found.advantages[4].any() and not found.returns[4].any()
    assert found.metrics == plain.metrics


@pytest.mark.parametrize("width", [0, 3])
def test_a_batch_of_which_nothing_can_be_used_teaches_nothing(width):
    nothing = torch.zeros(2, width)
    no = torch.zeros(2, dtype=torch.bool)
    found = credit(torch.full((2,), torch.nan), no, no, nothing.bool(), nothing + torch.nan, GaeAdvantage())
    assert torch.equal(found.advantages, nothing) and torch.equal(found.returns, nothing)
    assert found.metrics == {"explained_variance": 0.0, "critic_fallback": 1.0}


# Settings


@pytest.mark.parametrize(
    "wrong",
    [{"gamma": 1.1}, {"critic_lambda": -0.1}, {"policy_lambda": "long"}, {"adaptive_alpha": 0}, {"fallback": "none"}],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValidationError):
        GaeAdvantage(**wrong)


def test_a_value_clip_of_zero_would_freeze_the_critic_and_is_refused():
    with pytest.raises(ValidationError):
        CriticSettings(clip=0)
