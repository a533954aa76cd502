"""Ratio families, against numbers worked by hand. What all of them share is in test_objective."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from toys import kinds, near, sequence

from components.config.ratios import (
    CispoRatio,
    ClipRatio,
    DppoKlRatio,
    DppoTvRatio,
    DroRatio,
    GmpoRatio,
    GspoRatio,
    LuspoRatio,
    Ratio,
    SapoRatio,
    ToprRatio,
    VespoRatio,
)
from components.objectives.ratios import RATIOS

CLIP = ClipRatio(low=0.2, high=0.28)
GSPO = GspoRatio(kind="gspo", low=3e-4, high=4e-4)
WIDE = GspoRatio(kind="gspo", low=0.9, high=9.0)
RATIO = st.floats(0.05, 8)


def worked(differences, advantage, settings, **changed):
    """Objective and gradient of one completion: minus the mean token loss, and its slope in each log-probability."""
    logp, inputs = sequence(differences, advantage)
    inputs = inputs._replace(**{k: torch.full_like(inputs.old_logp, v) for k, v in changed.items()})
    tokens = RATIOS[settings.kind](logp, inputs, settings)
    value = -(tokens.loss * inputs.weights).sum()
    (gradient,) = torch.autograd.grad(value, logp)
    return value.item(), gradient[0].tolist(), tokens


def single(ratio, advantage, settings, **changed):
    """Value and gradient of one token, whose length is 1."""
    value, gradient, _ = worked([math.log(ratio)], advantage, settings, **changed)
    return value, gradient[0]


def test_every_choice_of_the_settings_is_registered_and_nothing_else():
    assert kinds(Ratio) - {"python"} == RATIOS.keys()


# Clip


@pytest.mark.parametrize(
    ("ratio", "positive", "negative"),
    [(0.7, 0.7, 0.0), (1.27, 1.27, -1.27), (1.29, 0.0, -1.29), (1.5, 0.0, -1.5), (1.0, 1.0, -1.0)],
)
def test_the_clip_removes_a_gradient_only_where_it_would_lead_further_outside(ratio, positive, negative):
    assert single(ratio, 1.0, CLIP)[1] == near(positive, 1e-9)
    assert single(ratio, -1.0, CLIP)[1] == near(negative, 1e-9)


@pytest.mark.parametrize(("high", "ceiling"), [(0.2, 0.012), (0.28, 0.0128)])
def test_a_token_of_one_percent_may_rise_to_its_ceiling_in_one_step(high, ceiling):
    settings = ClipRatio(low=0.2, high=high)
    assert single(ceiling / 0.01 - 1e-6, 1.0, settings)[1] > 1
    assert single(ceiling / 0.01 + 1e-6, 1.0, settings)[1] == 0.0


@given(RATIO, st.floats(0, 2), st.floats(0, 0.9))
def test_each_bound_acts_on_one_sign_of_the_advantage(ratio, high, low):
    assert single(ratio, -1.0, ClipRatio(low=0.2, high=high)) == single(ratio, -1.0, CLIP)
    assert single(ratio, 1.0, ClipRatio(low=low, high=0.28)) == single(ratio, 1.0, CLIP)


@pytest.mark.parametrize(
    ("ratio", "dual", "value", "gradient"),
    [(5.0, 3.0, -3.0, 0.0), (5.0, None, -5.0, -5.0), (10.0, 4.0, -4.0, 0.0), (2.9, 3.0, -2.9, -2.9)],
)
def test_dual_clip_bounds_the_loss_of_a_bad_token_that_has_become_likely(ratio, dual, value, gradient):
    assert single(ratio, -1.0, ClipRatio(dual=dual)) == near((value, gradient), 1e-9)


@given(RATIO)
def test_dual_clip_never_touches_a_positive_advantage(ratio):
    assert single(ratio, 1.0, ClipRatio(dual=1.5)) == single(ratio, 1.0, ClipRatio())


def test_the_clip_indicators_count_the_removed_gradients():
    ratios, signs = torch.tensor([[0.7, 1.5, 0.7, 1.5, 1.0, 5.0]]), torch.tensor([[1.0, 1, -1, -1, 1, -1]])
    _, inputs = sequence([0.0] * 6, 0.0)
    tokens = RATIOS["clip"](inputs.old_logp + ratios.log(), inputs._replace(advantages=signs), ClipRatio(dual=3))
    assert tokens.clipped_high.tolist() == [[False, True, False, False, False, True]]
    assert tokens.clipped_low.tolist() == [[False, False, True, False, False, False]]
    assert tokens.ratio[0].tolist() == near(ratios[0].tolist(), 1e-6)


@pytest.mark.parametrize("dual", [1.1, 1.28])
def test_a_dual_clip_inside_the_clip_is_refused(dual):
    with pytest.raises(ValidationError, match=r"dual \(.*\) must be above 1 \+ high"):
        ClipRatio(dual=dual, high=0.28)


# GSPO


@pytest.mark.parametrize(
    ("differences", "ratio"),
    [([3.0, -3.0, 0.6], 1.221403), ([0.1, 0.6, -0.3], 1.142631), ([0.1, 0.6, -0.3] * 2, 1.142631)],
)
def test_worked_sequence_ratios_do_not_depend_on_the_length(differences, ratio):
    value, _, tokens = worked(differences, 1.0, WIDE)
    assert value == near(ratio, 1e-6)
    assert tokens.ratio[0].tolist() == near([ratio] * len(differences), 1e-6)


@pytest.mark.parametrize("kind", ["gspo", "gspo_token"])
def test_every_token_of_a_sequence_has_the_same_share_of_the_gradient(kind):
    settings = WIDE.model_copy(update={"kind": kind})
    assert worked([0.1, 0.6, -0.3], 1.0, settings)[1] == near([0.380877] * 3, 1e-6)


@pytest.mark.parametrize("kind", ["gspo", "gspo_token"])
@pytest.mark.parametrize(
    ("mean", "advantage", "clipped"),
    [(3e-4, 1, False), (5e-4, 1, True), (5e-4, -1, False), (-2e-4, -1, False), (-4e-4, -1, True), (-4e-4, 1, False)],
)
def test_a_sequence_is_clipped_as_a_whole(kind, mean, advantage, clipped):
    settings = GSPO.model_copy(update={"kind": kind})
    _, gradient, tokens = worked([mean + 0.1, mean - 0.1], advantage, settings)
    assert [slope == 0.0 for slope in gradient] == [clipped] * 2
    assert (tokens.clipped_low | tokens.clipped_high).tolist() == [[clipped] * 2]


def test_the_token_form_gives_every_token_its_own_advantage():
    logp, inputs = sequence([0.1, 0.6, -0.3], 0.0)
    inputs = inputs._replace(advantages=torch.tensor([[1.0, 2.0, 0.0]]))
    loss = RATIOS["gspo_token"](logp, inputs, WIDE.model_copy(update={"kind": "gspo_token"})).loss
    (gradient,) = torch.autograd.grad(-loss.mean(), logp)
    assert gradient[0].tolist() == near([0.380877, 0.761754, 0.0], 1e-6)


@given(RATIO, st.sampled_from([-1.0, 1.0]))
def test_a_sequence_of_one_token_is_the_clip_of_that_token(ratio, advantage):
    bounds = {"low": 0.2, "high": 0.28}
    found = single(ratio, advantage, GspoRatio(kind="gspo", **bounds))
    assert found == near(single(ratio, advantage, ClipRatio(**bounds)), 1e-9)


# GMPO


@pytest.mark.parametrize(
    ("differences", "advantage", "ratio", "gradient"),
    [
        ([0.1, 0.6, -0.3], 1.0, 1.06894, [1, 0, 1]),
        ([0.1, 0.6, -0.3], -1.0, 1.14263, [1, 1, 1]),
        ([0.1, -0.6, -0.3], -1.0, 0.81873, [1, 0, 1]),
    ],
)
def test_tokens_are_clipped_one_by_one_before_their_geometric_mean(differences, advantage, ratio, gradient):
    value, slopes, tokens = worked(differences, advantage, GmpoRatio(kind="gmpo"))
    assert value == near(advantage * ratio, 1e-5)
    assert slopes == near([advantage * ratio / 3 * kept for kept in gradient], 1e-5)
    assert (tokens.clipped_low | tokens.clipped_high)[0].tolist() == [not kept for kept in gradient]


@pytest.mark.parametrize(("differences", "ratio"), [([0.1, 0.6, -0.3], 1.14263), ([0.1, -0.6, -0.3], 0.76593)])
def test_without_a_clip_gmpo_has_the_ratio_of_gspo(differences, ratio):
    loose = GmpoRatio(kind="gmpo", low=100, high=100)
    for advantage in (1.0, -1.0):
        value, gradient, _ = worked(differences, advantage, loose)
        assert value == near(advantage * ratio, 1e-5)
        assert gradient == near(worked(differences, advantage, WIDE)[1], 1e-9)


# CISPO


@pytest.mark.parametrize(("ratio", "gradient"), [(10.0, 5.0), (2.0, 2.0), (1.0, 1.0), (0.01, 0.01)])
@pytest.mark.parametrize("advantage", [1.0, -2.0])
def test_the_weight_is_capped_and_every_token_keeps_its_gradient(ratio, gradient, advantage):
    assert single(ratio, advantage, CispoRatio(kind="cispo", cap=5.0))[1] == near(advantage * gradient, 1e-9)


def test_the_floor_lifts_small_weights_and_none_is_counted_as_clipped():
    settings = CispoRatio(kind="cispo", floor=0.5)
    assert single(0.1, 1.0, settings)[1] == near(0.5, 1e-9)
    tokens = worked([math.log(10.0)], 1.0, settings)[2]
    assert not (tokens.clipped_low | tokens.clipped_high).any()
    assert tokens.ratio.item() == near(10.0, 1e-6)


def test_the_anchor_says_what_the_weight_is_relative_to():
    sampler = {"rollout_logp": -2.0 - math.log(3.0)}  # the sampler found the token three times less likely
    assert single(1.0, 1.0, CispoRatio(kind="cispo", anchor="old"), **sampler)[1] == near(1.0, 1e-6)
    assert single(1.0, 1.0, CispoRatio(kind="cispo", anchor="rollout"), **sampler)[1] == near(3.0, 1e-6)


@pytest.mark.parametrize("wrong", [{"cap": 0.28}, {"cap": 0.2}, {"low": 0.2}, {"high": 0.28}])
def test_a_cap_that_is_written_like_a_clip_range_is_refused(wrong):
    with pytest.raises(ValidationError, match=r"greater than or equal to 1|Extra inputs"):
        CispoRatio(kind="cispo", **wrong)


# SAPO


@pytest.mark.parametrize(("ratio", "slope"), [(1.0, 1.0), (0.5, 0.94), (1.5, 0.94), (2.0, 0.786), (3.0, 0.42)])
def test_worked_slopes_of_the_soft_gate(ratio, slope):
    """The gate is a function of the ratio, and d ratio / d log pi = ratio."""
    assert single(ratio, 1.0, SapoRatio(kind="sapo"))[1] / ratio == near(slope, 5e-4)


@pytest.mark.parametrize(("advantage", "value"), [(1.0, 2.0), (-1.0, -1.904762)])
def test_the_gate_is_two_over_tau_on_policy_with_a_tau_for_each_sign(advantage, value):
    assert single(1.0, advantage, SapoRatio(kind="sapo")) == near((value, advantage), 1e-6)


@given(st.floats(0.1, 20), st.floats(0.1, 20), st.sampled_from([-1.0, 1.0]))
def test_the_slope_on_policy_is_one_for_any_tau(positive, negative, advantage):
    settings = SapoRatio(kind="sapo", tau_positive=positive, tau_negative=negative)
    assert single(1.0, advantage, settings)[1] == near(advantage, 1e-5)


@given(st.floats(0, 0.95))
def test_the_gate_is_symmetric_about_the_old_policy(distance):
    up, down = (single(ratio, 1.0, SapoRatio(kind="sapo"))[1] / ratio for ratio in (1 + distance, 1 - distance))
    assert up == near(down, 1e-6)


def test_negative_advantages_decay_faster():
    up, down = (abs(single(2.0, sign, SapoRatio(kind="sapo"))[1]) for sign in (1.0, -1.0))
    assert down < up


# DPPO


def trusted(sampler, policy, advantage, settings):
    """Whether a token that went from the sampler's probability to the policy's keeps its gradient, and its weight."""
    changed = {"rollout_logp": math.log(sampler), "old_logp": math.log(sampler)}
    _, inputs = sequence([0.0], advantage)
    inputs = inputs._replace(**{k: torch.full_like(inputs.old_logp, v) for k, v in changed.items()})
    logp = torch.full_like(inputs.old_logp, math.log(policy)).requires_grad_()
    tokens = RATIOS[settings.kind](logp, inputs, settings)
    (slope,) = torch.autograd.grad(-tokens.loss.sum(), logp)
    assert bool(tokens.clipped_low | tokens.clipped_high) == (slope.item() == 0.0)
    return slope.item()


def tv(delta=0.15):
    return DppoTvRatio(kind="dppo_tv", delta=delta)


def kl(delta=0.05):
    return DppoKlRatio(kind="dppo_kl", delta=delta)


@pytest.mark.parametrize(
    ("sampler", "policy", "advantage", "distance", "divergence"),
    [(0.001, 0.002, 1.0, 0.001, 0.000307), (0.9, 0.75, -1.0, 0.15, 0.072460), (0.5, 0.7, 1.0, 0.2, 0.087177)],
)
def test_worked_distances_between_sampler_and_policy(sampler, policy, advantage, distance, divergence):
    for settings, value in ((tv, distance), (kl, divergence)):
        assert trusted(sampler, policy, advantage, settings(value + 2e-6)) == near(advantage * policy / sampler, 1e-6)
        assert trusted(sampler, policy, advantage, settings(value - 2e-6)) == 0.0


@pytest.mark.parametrize("settings", [tv(0.05), kl(0.05)])
@pytest.mark.parametrize(
    ("sampler", "policy", "advantage", "kept"),
    [(0.5, 0.9, 1.0, False), (0.5, 0.9, -1.0, True), (0.5, 0.1, 1.0, True), (0.5, 0.1, -1.0, False)],
)
def test_only_a_step_further_out_is_stopped(settings, sampler, policy, advantage, kept):
    assert (trusted(sampler, policy, advantage, settings) != 0.0) == kept


def test_the_weight_is_capped_without_a_gradient_through_the_cap():
    assert trusted(0.001, 0.1, 1.0, tv(0.5)) == near(20.0, 1e-6)
    assert trusted(0.001, 0.01, 1.0, tv(0.5)) == near(10.0, 1e-6)


def test_the_trust_region_is_around_the_sampler_and_not_around_the_old_policy():
    assert single(1.0, 1.0, tv(), rollout_logp=math.log(0.5))[1] == near(math.exp(-2.0) / 0.5, 1e-6)


@pytest.mark.parametrize(("kind", "delta"), [("dppo_tv", 0.15), ("dppo_kl", 0.05)])
def test_each_distance_has_its_own_default_bound(kind, delta):
    assert TypeAdapter(Ratio).validate_python({"kind": kind}).delta == delta


# LUSPO


@pytest.mark.parametrize("tokens", [1, 3, 50])
def test_the_gradient_of_a_token_does_not_depend_on_the_length_of_its_answer(tokens):
    logp, inputs = sequence([0.0] * tokens, 1.0)
    loss = RATIOS["luspo"](logp, inputs, LuspoRatio(kind="luspo")).loss
    (gradient,) = torch.autograd.grad(-loss.sum(), logp)  # a weight that is the same for all tokens
    assert gradient[0].tolist() == near([1.0] * tokens, 1e-9)


@pytest.mark.parametrize(("mean", "clipped"), [(2.4e-3, False), (2.6e-3, True)])
def test_luspo_has_its_own_range(mean, clipped):
    assert bool(worked([mean] * 3, 1.0, LuspoRatio(kind="luspo"))[2].clipped_high.all()) == clipped


# VESPO


@pytest.mark.parametrize(
    ("weight", "advantage", "expected"),
    [
        (1.0, 1.0, 1.0),
        (1.0, -1.0, 1.0),
        (2 / 3, 1.0, 1.20813),
        (1.5, -1.0, 1.24159),
        (1e6, 1.0, 0.0),
        (1e-6, -1.0, 0.0),
    ],
)
def test_worked_weights_of_a_sequence(weight, advantage, expected):
    """The weight is that of the product over both tokens; each token has its own gradient, times it."""
    gradient = worked([math.log(weight) - 0.1, 0.1], advantage, VespoRatio(kind="vespo"))[1]
    assert gradient == near([advantage * expected / 2] * 2, 1e-5)


@given(RATIO, st.sampled_from([(1.0, 2 / 3), (-1.0, 1.5)]))
def test_the_reshaped_weight_is_greatest_at_k_over_lambda(ratio, case):
    advantage, peak = case
    found, greatest = (abs(single(r, advantage, VespoRatio(kind="vespo"))[1]) for r in (ratio, peak))
    assert found <= greatest + 1e-9


# TOPR


@pytest.mark.parametrize(
    ("ratio", "advantage", "gradient"),
    [(3.0, -1.0, -1.0), (0.3, -1.0, -0.3), (3.0, 1.0, 1.0), (0.01, 1.0, 1.0), (1.0, -2.0, -2.0)],
)
def test_what_was_good_is_imitated_and_what_was_bad_counts_as_long_as_it_is_likely(ratio, advantage, gradient):
    assert single(ratio, advantage, ToprRatio(kind="topr"))[1] == near(gradient, 1e-6)


# DRO


@pytest.mark.parametrize("advantage", [-1.0, 0.5])
@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_a_token_starts_with_its_advantage_and_comes_to_rest_at_a_over_beta(advantage, beta):
    settings = DroRatio(kind="dro", beta=beta)
    assert worked([0.0], advantage, settings)[1] == near([advantage], 1e-9)
    assert worked([advantage / beta], advantage, settings)[1] == near([0.0], 1e-9)
    assert worked([advantage / beta + 0.1], advantage, settings)[1] == near([-0.1 * beta], 1e-9)
