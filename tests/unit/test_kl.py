"""KL to the reference: value and gradient of every estimator, by enumerating the three actions of a toy policy."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from toys import kinds, near, settings

from components.config.objective import Kl
from components.objectives.kl import KLS, estimate_k3
from components.objectives.tokens import TokenInputs

POLICY, REFERENCE = (torch.tensor(p, dtype=torch.float64) for p in ([0.5, 0.3, 0.2], [0.4, 0.4, 0.2]))
VALUE = 0.025267
"""KL(policy || reference) in nats."""
REVERSE = [0.098938, -0.093885, -0.005053]
"""Its gradient with respect to the logits."""
FORWARD = [0.1, -0.1, 0.0]
"""That of KL(reference || policy), which is policy - reference."""


def inputs(logp, ref_logp, old_logp=None):
    mask = torch.ones_like(logp, dtype=torch.bool)
    zeros = torch.zeros_like(ref_logp)
    return TokenInputs(mask, zeros, zeros, zeros, logp.detach() if old_logp is None else old_logp, ref_logp)


def k1(logp, tokens):
    """What stands in the reward; no loss term, see below."""
    return logp - tokens.ref_logp


def k2(logp, tokens):
    return KLS["k2"](logp, tokens)


def k3(logp, tokens):
    return KLS["k3"](logp, tokens)


def as_loss(estimator, sampler=POLICY):
    """Expected value and gradient over actions of the sampler, with the estimate differentiated."""
    logits = POLICY.log().requires_grad_()
    logp = torch.log_softmax(logits, 0)
    value = (sampler * estimator(logp, inputs(logp, REFERENCE.log(), sampler.log()))).sum()
    value.backward()
    return value.item(), logits.grad.tolist()


def in_the_reward(estimator):
    """Expected gradient of REINFORCE when the estimate is a cost that was taken from the reward."""
    logits = POLICY.log().requires_grad_()
    logp = torch.log_softmax(logits, 0)
    cost = estimator(logp, inputs(logp, REFERENCE.log())).detach()
    (POLICY * cost * logp).sum().backward()
    return logits.grad.tolist()


def test_the_worked_gradient_is_that_of_the_kl_itself():
    logits = POLICY.log().requires_grad_()
    logp = torch.log_softmax(logits, 0)
    divergence = (logp.exp() * (logp - REFERENCE.log())).sum()
    divergence.backward()
    assert divergence.item() == near(VALUE, 1e-6)
    assert logits.grad.tolist() == near(REVERSE, 1e-6)
    assert (REFERENCE * (REFERENCE.log() - POLICY.log())).sum().item() == near(0.025815, 1e-6)


@pytest.mark.parametrize(
    ("estimator", "value", "gradient"),
    [
        pytest.param(k1, VALUE, [0.0, 0.0, 0.0], id="k1"),
        pytest.param(k2, 0.024862, REVERSE, id="k2"),
        pytest.param(k3, VALUE, FORWARD, id="k3"),
        pytest.param(KLS["k3_straight_through"], VALUE, REVERSE, id="k3_straight_through"),
        pytest.param(KLS["k3_ratio"], VALUE, REVERSE, id="k3_ratio"),
    ],
)
def test_worked_value_and_gradient_of_an_estimate_as_a_loss(estimator, value, gradient):
    found, slope = as_loss(estimator)
    assert found == near(value, 1e-6)
    assert slope == near(gradient, 1e-6)


@pytest.mark.parametrize(
    ("estimator", "gradient"),
    [(k1, REVERSE), (k2, [0.00002, 0.00496, -0.00497]), (k3, [-0.00106, 0.00612, -0.00505])],
)
def test_worked_gradient_of_an_estimate_in_the_reward(estimator, gradient):
    assert in_the_reward(estimator) == near(gradient, 1e-5)


@given(st.lists(st.floats(0.1, 1), min_size=3, max_size=3))
def test_the_ratio_makes_value_and_gradient_right_off_policy_too(weights):
    sampler = torch.tensor(weights, dtype=torch.float64) / sum(weights)
    value, slope = as_loss(KLS["k3_ratio"], sampler)
    assert value == near(VALUE, 1e-6)
    assert slope == near(REVERSE, 1e-6)


@given(st.floats(-8, 8), st.floats(-2, 2))
def test_the_gradient_of_the_ratio_times_k3_is_the_one_of_the_product_rule(gap, step):
    logp = torch.tensor([gap], dtype=torch.float64, requires_grad=True)
    tokens = inputs(logp, torch.zeros(1, dtype=torch.float64), logp.detach() - step)
    value = KLS["k3_ratio"](logp, tokens)
    product = (logp - tokens.old_logp).exp() * k3(logp, tokens)
    assert value.item() == near(product.item(), 1e-6)
    found, expected = (torch.autograd.grad(v, logp)[0].item() for v in (value, product))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "gap", "gradient"),
    [
        ("k2", 30.0, 30.0),
        ("k2", -30.0, -30.0),
        ("k3", 30.0, 1.0),
        ("k3", -30.0, 0.0),  # where it dies; before that it is -e^20
        ("k3_straight_through", 30.0, 30.0),
        ("k3_straight_through", -30.0, -30.0),
        ("k3_ratio", 30.0, 30.0),
        ("k3_ratio", -30.0, -30.0),
    ],
)
def test_a_policy_far_away_has_a_finite_kl_whose_gradient_leads_back_or_is_gone(name, gap, gradient):
    logp = torch.tensor([gap], requires_grad=True)
    value = KLS[name](logp, inputs(logp, torch.zeros(1)))
    value.backward()
    assert torch.isfinite(value).all()
    assert logp.grad.item() == near(gradient, 1e-3)


def test_the_gradient_of_k3_dies_at_twenty_nats_below_the_reference_and_not_before():
    slopes = []
    for gap in (-19.9, -20.1):
        logp = torch.tensor([gap], dtype=torch.float64, requires_grad=True)
        k3(logp, inputs(logp, torch.zeros(1))).backward()
        slopes.append(logp.grad.item())
    assert slopes[0] < -1e8
    assert slopes[1] == 0.0


@given(st.floats(-5, 5))
def test_k3_is_never_negative_and_zero_at_home(gap):
    assert estimate_k3(torch.tensor(gap), torch.tensor(0.0)).item() >= -1e-6
    assert estimate_k3(torch.tensor(gap), torch.tensor(gap)).item() == 0.0


@pytest.mark.parametrize(("first", "second", "value"), [(-5.0, -15.0, 9.0), (-15.0, -5.0, 22015.47)])
def test_the_direction_of_a_measured_gap_matters(first, second, value):
    """Samples come from the sampler, so that one stands first: KL(rollout || old)."""
    assert estimate_k3(torch.tensor(first), torch.tensor(second)).item() == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("name", sorted(KLS))
def test_a_kl_term_without_a_reference_is_an_error(name):
    logp = torch.zeros(1)
    with pytest.raises(ValueError, match="ref_logp"):
        KLS[name](logp, inputs(logp, torch.zeros(1))._replace(ref_logp=None))


def test_every_choice_of_the_settings_is_registered_except_the_one_in_the_reward():
    assert kinds(Kl) - KLS.keys() == {"k1_reward"}
    assert KLS.keys() <= kinds(Kl)


@pytest.mark.parametrize("wrong", ["k1", "k2_reward", "k3_reward"])
def test_the_wrong_pairs_of_estimator_and_place_cannot_be_written(wrong):
    """k1 as a loss is pure noise; k2 and k3 in the reward lose almost all of the gradient."""
    with pytest.raises(ValidationError, match="'k1_reward'"):
        settings(kl={"kind": wrong})
