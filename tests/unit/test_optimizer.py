"""AdamW as every trainer uses it: clipped, skipped where it is not finite, saved to the bit; and its schedules."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import Parameter

from components.config.base import AdamWSettings
from components.learner.optimizer import ClippedAdamW, warmup_then_constant, warmup_then_cosine


def optimizer(weight: Parameter) -> ClippedAdamW:
    return ClippedAdamW({"weight": weight}, AdamWSettings(lr=0.1, weight_decay=0.1))


def update(weight: Parameter, of: ClippedAdamW, gradient: float, lr: float = 0.1) -> float:
    of.zero_grad()
    (weight * gradient).sum().backward()
    return of.step(lr)


def test_the_norm_is_that_before_clipping():
    weight = Parameter(torch.ones(4))
    assert update(weight, optimizer(weight), 3.0) == pytest.approx(6.0)
    assert weight.grad.norm().item() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("gradient", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_changes_neither_weights_nor_moments(gradient):
    spoiled, clean = Parameter(torch.ones(2)), Parameter(torch.ones(2))
    of_spoiled, of_clean = optimizer(spoiled), optimizer(clean)
    assert not math.isfinite(update(spoiled, of_spoiled, gradient))
    assert spoiled.tolist() == [1.0, 1.0]
    for weight, adamw in ((spoiled, of_spoiled), (clean, of_clean)):
        update(weight, adamw, 0.5)
    assert torch.equal(spoiled, clean)


def test_the_rate_of_a_step_is_the_one_that_is_asked_for():
    still, moved = Parameter(torch.ones(1)), Parameter(torch.ones(1))
    update(still, optimizer(still), 1.0, lr=0.0)
    update(moved, optimizer(moved), 1.0, lr=0.2)
    assert still.item() == 1.0
    assert moved.item() == pytest.approx(1 - 0.2 - 0.2 * 0.1, abs=1e-5)


def test_a_loaded_optimizer_goes_on_to_the_bit(tmp_path):
    kept, resumed = Parameter(torch.ones(3)), Parameter(torch.zeros(3))
    of_kept, of_resumed = optimizer(kept), optimizer(resumed)
    update(kept, of_kept, 0.3)
    of_kept.state.save(tmp_path / "state")
    of_resumed.load(tmp_path / "state")
    for weight, adamw in ((kept, of_kept), (resumed, of_resumed)):
        update(weight, adamw, 0.7)
    assert torch.equal(kept, resumed)


@pytest.mark.parametrize(("number", "warmup", "factor"), [(1, 4, 0.25), (4, 4, 1.0), (9, 4, 1.0), (1, 0, 1.0)])
def test_worked_rates_of_a_linear_warmup_that_stays(number, warmup, factor):
    assert warmup_then_constant(number, warmup) == factor


@pytest.mark.parametrize(("step", "factor"), [(0, 0.25), (1, 0.5), (3, 1.0), (4, 1.0), (8, 0.5), (12, 0.0)])
def test_worked_learning_rates_of_a_linear_warmup_and_a_cosine_decay(step, factor):
    assert warmup_then_cosine(step, warmup=4, steps=12) == pytest.approx(factor)


@given(st.integers(0, 20), st.integers(1, 60))
def test_the_learning_rate_stays_between_nothing_and_its_peak(warmup, steps):
    factors = [warmup_then_cosine(step, warmup, steps) for step in range(steps)]
    assert all(0 <= factor <= 1 for factor in factors)
    assert factors[0] > 0
