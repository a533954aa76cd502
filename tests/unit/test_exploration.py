"""What keeps a policy exploring: tokens that are singled out, and coefficients that follow a measurement."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor
from toys import kinds, lengths, near, settings

from components.config.exploration import ClipCov, EntropyBonus, EntropyTarget, KlCov, TokenSelection, TopEntropy
from components.config.objective import KlTarget
from components.learner.objective import Controller
from components.objectives.controllers import (
    Coefficients,
    adaptive_kl,
    applied_entropy_coefficient,
    next_beta,
    next_entropy_coefficient,
)
from components.objectives.exploration import SELECTIONS, SelectionInputs, covariance

NAN, INF = float("nan"), float("inf")


def batch(rows: int = 8, width: int = 50, seed: int = 0) -> SelectionInputs:
    generator = torch.Generator().manual_seed(seed)
    logp, entropy, advantages = (3 * torch.randn(rows, width, generator=generator) for _ in range(3))
    mask = lengths(*(1 + (7 * i) % width for i in range(1, rows + 1)), width=width)
    return SelectionInputs(logp, entropy.abs(), advantages, mask)


def select(chosen: ClipCov | KlCov | TopEntropy, inputs: SelectionInputs, seed: int = 0) -> Tensor:
    return SELECTIONS[chosen.kind](inputs, chosen, torch.Generator().manual_seed(seed))


SECTIONS = [ClipCov(kind="clip_cov", share=0.1), KlCov(kind="kl_cov", share=0.1), TopEntropy(kind="top_entropy")]


def test_every_choice_of_the_settings_is_registered_and_nothing_else():
    assert kinds(TokenSelection) == SELECTIONS.keys()


# Covariance


def test_worked_covariance_terms():
    logp, advantages = torch.tensor([[-0.1, -2.3, -0.7, -1.5]]), torch.tensor([[1.0, 1, -1, -1]])
    mask = torch.ones(1, 4, dtype=torch.bool)
    found = covariance(SelectionInputs(logp, logp, advantages, mask))
    assert found[0].tolist() == near([1.05, -1.15, -0.45, 0.35], 1e-5)


def test_its_mean_is_the_covariance_of_the_batch():
    inputs = batch()
    points = torch.stack([inputs.old_logp[inputs.mask], inputs.advantages[inputs.mask]])
    found = covariance(inputs)
    assert found[inputs.mask].mean().item() == near(points.cov(correction=0)[0, 1].item(), 1e-4)
    assert (found[~inputs.mask] == 0).all()


@pytest.mark.parametrize("junk", [NAN, INF, -INF, 1e30])
def test_a_number_that_is_not_finite_spoils_no_other_tokens_covariance(junk):
    inputs, place = batch(), (torch.tensor(1), torch.tensor(2))
    spoiled = inputs._replace(old_logp=inputs.old_logp.index_put(place, torch.tensor(junk)))
    without = inputs._replace(mask=inputs.mask.index_put(place, torch.tensor(False)))
    assert torch.equal(covariance(spoiled), covariance(without))


# Selections


def test_clip_cov_takes_the_gradient_from_a_share_of_the_tokens_inside_the_band():
    inputs, chosen = batch(), ClipCov(kind="clip_cov", share=0.1)
    dropped = inputs.mask & ~select(chosen, inputs)
    values = covariance(inputs)[dropped]
    assert int(dropped.sum()) == round(0.1 * int(inputs.mask.sum()))
    assert ((values > 1) & (values < 5)).all()


def test_clip_cov_draws_by_its_seed():
    inputs, chosen = batch(), ClipCov(kind="clip_cov", share=0.1)
    assert torch.equal(select(chosen, inputs, 1), select(chosen, inputs, 1))
    assert not torch.equal(select(chosen, inputs, 1), select(chosen, inputs, 2))


def test_clip_cov_keeps_everything_when_nothing_lies_in_the_band():
    inputs = batch()
    assert torch.equal(select(ClipCov(kind="clip_cov", low=1e6, high=1e7), inputs), inputs.mask)


def test_clip_cov_drops_no_more_than_the_band_holds():
    inputs = batch()
    inside = (covariance(inputs) > 1) & (covariance(inputs) < 5) & inputs.mask
    assert torch.equal(select(ClipCov(kind="clip_cov", share=1.0), inputs), inputs.mask & ~inside)


def test_kl_cov_takes_the_tokens_of_highest_covariance():
    inputs = batch()
    chosen = select(KlCov(kind="kl_cov", share=0.1), inputs)
    values = covariance(inputs)
    assert int(chosen.sum()) == round(0.1 * int(inputs.mask.sum()))
    assert values[chosen].min() >= values[inputs.mask & ~chosen].max()


def test_top_entropy_looks_at_the_whole_batch_and_not_at_each_row():
    inputs = batch(rows=2)._replace(mask=torch.ones(2, 50, dtype=torch.bool))
    inputs = inputs._replace(entropy=torch.stack([torch.arange(50.0), 100 + torch.arange(50.0)]))
    chosen = select(TopEntropy(kind="top_entropy", share=0.2), inputs)
    assert chosen.nonzero().tolist() == [[1, column] for column in range(30, 50)]


def test_top_entropy_of_everything_is_everything():
    inputs = batch()
    assert torch.equal(select(TopEntropy(kind="top_entropy", share=1.0), inputs), inputs.mask)


@pytest.mark.parametrize("chosen", [KlCov(kind="kl_cov", share=2e-4), ClipCov(kind="clip_cov", share=2e-4)])
def test_a_small_share_is_one_token_at_least(chosen):
    inputs = batch()
    found = select(chosen, inputs)
    assert int((found if chosen.kind == "kl_cov" else inputs.mask & ~found).sum()) == 1


def test_ties_go_to_the_earlier_token():
    inputs = batch(rows=1)._replace(mask=torch.ones(1, 50, dtype=torch.bool), entropy=torch.ones(1, 50))
    assert select(TopEntropy(kind="top_entropy", share=0.1), inputs).nonzero()[:, 1].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("chosen", SECTIONS, ids=lambda s: s.kind)
@pytest.mark.parametrize("junk", [NAN, INF, -INF, 1e30])
def test_what_stands_in_masked_places_changes_no_selection(chosen, junk):
    inputs = batch()
    spoiled = [torch.where(inputs.mask, values, junk) for values in inputs[:3]]
    found = select(chosen, SelectionInputs(*spoiled, inputs.mask))
    assert torch.equal(found, select(chosen, inputs))
    assert not (found & ~inputs.mask).any()


@pytest.mark.parametrize("chosen", SECTIONS[1:], ids=lambda s: s.kind)
@pytest.mark.parametrize("junk", [NAN, INF])
def test_a_token_whose_numbers_are_not_finite_is_never_chosen(chosen, junk):
    inputs = batch()
    spoiled = [values.clone() for values in inputs[:3]]
    for values in spoiled:
        values[2, 3] = junk
    assert not select(chosen, SelectionInputs(*spoiled, inputs.mask))[2, 3]


@pytest.mark.parametrize("chosen", SECTIONS, ids=lambda s: s.kind)
@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (0, 3)])
def test_nothing_is_chosen_from_a_batch_without_a_token(chosen, shape):
    zeros = torch.zeros(shape)
    assert not select(chosen, SelectionInputs(zeros, zeros, zeros, zeros.bool())).any()


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "clip_cov", "share": 0},
        {"kind": "clip_cov", "low": 5, "high": 5},
        {"kind": "kl_cov", "share": 0},
        {"kind": "top_entropy", "share": 0},
        {"kind": "top_entropy", "share": 1.1},
    ],
)
def test_a_selection_of_nothing_is_refused(wrong):
    with pytest.raises(ValidationError):
        settings(selection=wrong)


# The entropy bonus


BONUS = EntropyBonus(coef=0.0, target=EntropyTarget(value=0.2, step=0.005))


def test_worked_coefficients_of_the_adaptive_bonus():
    coefficient, course, applied = 0.0, [], []
    for entropy in (0.5, 0.3, 0.1, 0.1, 0.25, 0.3):
        coefficient = next_entropy_coefficient(coefficient, entropy, BONUS)
        course.append(coefficient)
        applied.append(applied_entropy_coefficient(coefficient, entropy, BONUS))
    assert course == near([0, 0, 0.005, 0.010, 0.005, 0], 1e-9)
    assert applied == near([0, 0, 0.005, 0.010, 0, 0], 1e-9)


@given(st.floats(0, 1), st.floats(0, 5))
def test_the_coefficient_stays_in_its_range(coefficient, entropy):
    assert 0 <= next_entropy_coefficient(coefficient, entropy, BONUS) <= 1


def test_a_token_without_an_entropy_does_not_switch_a_resting_bonus_on():
    controller = Controller(settings(entropy={"coef": 0.01, "target": {"value": 0.2}}))
    for entropies in ([0.5, 0.5], [0.5, math.nan], [math.nan, math.nan]):
        controller.observe_entropy(torch.tensor(entropies))
        assert controller.applied().entropy == 0
    assert controller.coefficients.entropy == 0


def test_entropy_at_the_target_counts_as_too_low():
    assert next_entropy_coefficient(0.0, 0.2, BONUS) == 0.005
    assert applied_entropy_coefficient(0.005, 0.2, BONUS) == 0.005


@given(st.floats(0, 5))
def test_a_static_bonus_never_changes_and_always_applies(entropy):
    static = EntropyBonus(coef=0.01)
    assert next_entropy_coefficient(0.01, entropy, static) == 0.01
    assert applied_entropy_coefficient(0.01, entropy, static) == 0.01


def test_a_measurement_that_is_not_a_number_changes_nothing():
    assert next_entropy_coefficient(0.01, NAN, BONUS) == 0.01
    assert next_beta(0.1, NAN, KlTarget(value=0.1), 100) == 0.1


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [({"coef": 0.0}, "no bonus"), ({"coef": 0.5, "target": {"max": 0.1}}, r"coef \(0.5\) starts above target.max")],
)
def test_a_bonus_that_contradicts_itself_is_refused(wrong, problem):
    with pytest.raises(ValidationError, match=problem):
        settings(entropy=wrong)


# The KL controller


@pytest.mark.parametrize(
    ("kl", "factor"),
    [(0.1, 1.0), (0.11, 1 + 0.1 * 0.0256), (0.2, 1 + 0.2 * 0.0256), (9.0, 1 + 0.2 * 0.0256), (0.0, 1 - 0.2 * 0.0256)],
)
def test_worked_steps_of_beta(kl, factor):
    assert next_beta(0.04, kl, KlTarget(value=0.1, horizon=10_000), 256) == near(0.04 * factor, 1e-9)


@given(st.floats(1e-4, 1), st.floats(0, 10), st.integers(1, 10**6), st.integers(1, 10**6))
def test_beta_stays_above_zero_for_any_batch_and_horizon(beta, kl, horizon, completions):
    assert next_beta(beta, kl, KlTarget(value=0.1, horizon=horizon), completions) >= 0.8 * beta


# Where they start


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({}, (0.0, 0.0)),
        ({"kl": {"kind": "k2", "beta": 0.1}, "entropy": {"coef": 0.02}}, (0.1, 0.02)),
        ({"kl": {"kind": "k1_reward", "beta": 0.3}}, (0.3, 0.0)),
    ],
)
def test_coefficients_start_where_the_settings_say(sections, expected):
    assert Coefficients.initial(settings(**sections)) == expected


@pytest.mark.parametrize("kind", ["k2", "k3", "k3_straight_through", "k3_ratio", "k1_reward"])
def test_any_kl_may_be_adaptive_and_none_is_unless_it_says_so(kind):
    assert adaptive_kl(settings(kl={"kind": kind, "target": {"value": 0.1}})) == KlTarget(value=0.1)
    assert adaptive_kl(settings(kl={"kind": kind})) is None
    assert adaptive_kl(settings()) is None
