"""The norm of a gradient, to what fp64 finds, and clipping by it."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import Parameter

from components.config.base import AdamWSettings
from components.learner.optimizer import ROW, ClippedAdamW, clip, sum_of_squares

SHAPES = [(0,), (1,), (ROW - 1,), (ROW,), (2, ROW), (3, ROW + 7), (5, 4, 3)]


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("shapes", [*([shape] for shape in SHAPES), SHAPES], ids=str)
def test_every_element_counts_once(shapes):
    gradients = [noise(*shape) for shape in shapes]
    expected = sum(g.double().square().sum().item() for g in gradients)
    assert sum_of_squares(gradients).item() == pytest.approx(expected, rel=1e-6)


def test_half_precision_is_summed_in_more():
    gradient = noise(300, 700).bfloat16()
    exact = gradient.double().square().sum().item()
    assert sum_of_squares([gradient]).item() == pytest.approx(exact, rel=1e-6)
    assert sum_of_squares([]).item() == 0


def test_the_norm_of_a_large_tensor_is_that_of_its_halves_together():
    large = noise(1 << 12, 1 << 11)
    exact = large.double().square().sum().item()
    assert sum_of_squares([large]).item() == pytest.approx(exact, rel=1e-7)
    assert sum_of_squares(list(large.split(1000))).item() == pytest.approx(exact, rel=1e-7)
    assert sum_of_squares([large.t()]).item() == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_stays_none(value):
    assert not math.isfinite(sum_of_squares([noise(7), torch.tensor([1.0, value])]).item())


@pytest.mark.parametrize("limit", [0.1, 1.0, 1e6])
def test_clipping_is_that_of_torch(limit):
    gradients = [noise(50, 60), noise(7)]
    parameters = [Parameter(torch.zeros_like(g)) for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    norm = torch.nn.utils.clip_grad_norm_(parameters, limit).item()
    found = math.sqrt(sum_of_squares(gradients).item())
    clip(gradients, found, limit)
    assert found == pytest.approx(norm, rel=1e-6)
    assert all(torch.allclose(g, p.grad, rtol=1e-6, atol=0) for g, p in zip(gradients, parameters, strict=True))


def test_an_update_reports_the_norm_of_a_large_gradient_to_1e_7():
    parameter = Parameter(torch.zeros(1 << 12, 1 << 11))
    parameter.grad = noise(1 << 12, 1 << 11)
    exact = math.sqrt(parameter.grad.double().square().sum().item())
    assert ClippedAdamW({"w": parameter}, AdamWSettings(lr=1.0)).step(lr=0.0) == pytest.approx(exact, rel=1e-7)
