"""What an optimizer does to its weights: nothing between two updates, and in one no more than it can."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from factories import policy
from test_learner import learner_of, ready, sampled
from torch.nn import Parameter

from components.config.base import AdamWSettings
from components.health.invariants import largest_step
from components.learner.optimizer import ClippedAdamW, spread


def optimizer(**settings: object) -> tuple[ClippedAdamW, Parameter]:
    weight = Parameter(torch.ones(100))
    return ClippedAdamW({"w": weight}, AdamWSettings.model_validate({"lr": 0.01, **settings})), weight


def update(one: ClippedAdamW, weight: Parameter, gradient: float = 1.0, lr: float = 0.01) -> dict[str, float]:
    weight.grad = torch.full_like(weight, gradient)
    one.step(lr)
    return one.trace()


@pytest.mark.parametrize("size", [1, 2, 64, 65, 28_311_552, 1_000_000_007])
def test_the_elements_that_are_looked_at_reach_from_the_first_to_the_last(size: int) -> None:
    places = spread(size).tolist()
    assert (places[0], places[-1], len(set(places))) == (0, size - 1, min(64, size))


def test_a_sound_update_is_within_the_bound_and_moves_every_tensor() -> None:
    one, weight = optimizer()
    for gradient in (1.0, -3.0, 0.1, 5.0):
        found = update(one, weight, gradient)
        assert 0 < found["update_largest"] <= largest_step((0.9, 0.95)) + 1e-3
        assert (found["weights_moved"], found["weights_still"]) == (0.0, 0.0)


@pytest.mark.parametrize("betas", [(0.9, 0.95), (0.9, 0.999), (0.5, 0.6)])
def test_no_history_of_gradients_exceeds_the_bound(betas: tuple[float, float]) -> None:
    """The worst case is a gradient that grows so that Cauchy's inequality is an equality."""
    one, weight = optimizer(betas=betas, grad_clip=1e9)
    growth = betas[1] / betas[0]
    largest = [update(one, weight, growth**n)["update_largest"] for n in range(60)]
    assert 0.9 * largest_step(betas) < max(largest) <= 1.01 * largest_step(betas) or betas[1] > 0.99


def test_a_weight_that_something_else_changes_is_seen_at_the_next_update_and_not_after_a_load(tmp_path) -> None:
    one, weight = optimizer()
    update(one, weight)
    one.state.save(tmp_path / "state")
    with torch.no_grad():
        weight += 1
    assert update(one, weight)["weights_moved"] == 1.0
    one.load(tmp_path / "state")
    assert update(one, weight)["weights_moved"] == 0.0


def test_a_tensor_that_should_have_changed_and_did_not_is_still() -> None:
    one, weight = optimizer()
    weight.grad = torch.ones_like(weight)
    one._steadiness.after(one._steadiness.before(0.01), 0.01)
    assert one.trace()["weights_still"] == 1.0


@pytest.mark.parametrize(("gradient", "lr"), [(0.0, 0.01), (1.0, 1e-9)])
def test_one_without_a_gradient_or_with_a_rate_below_its_rounding_is_not(gradient: float, lr: float) -> None:
    one, weight = optimizer()
    assert update(one, weight, gradient, lr)["weights_still"] == 0.0


def test_a_step_at_another_rate_than_is_said_is_larger_than_the_bound() -> None:
    one, weight = optimizer()
    weight.grad = torch.ones_like(weight)
    before = one._steadiness.before(0.01)
    with torch.no_grad():
        weight -= 0.04
    one._steadiness.after(before, 0.01)
    assert one.trace()["update_largest"] == pytest.approx(4, abs=1e-3)


def test_a_batch_is_what_was_sealed_until_anything_of_it_changes() -> None:
    sealed = ready(learner_of(policy()), sampled()).sealed()
    assert sealed.intact and replace(sealed, seal=None).intact
    assert sealed.advantages is not None
    assert not replace(sealed, advantages=-sealed.advantages).intact
    assert not replace(sealed, response_mask=~sealed.response_mask).intact
    assert sealed.rows(slice(0, 2)).seal is None


@pytest.mark.parametrize("binding", [True, False])
def test_a_torn_batch_is_refused_where_its_seal_binds(binding: bool) -> None:
    one = learner_of(policy())
    sealed = ready(one, sampled()).sealed(binding=binding)
    torn = replace(sealed, advantages=2 * sealed.advantages)  # type: ignore[operator]
    found = one.step(torn, 0)
    assert (found["batch_torn"], found["updates_skipped"]) == (1.0, float(binding)) and not sealed.refused


def test_a_torn_batch_changes_no_weight() -> None:
    one = learner_of(policy())
    sealed = ready(one, sampled()).sealed()
    before = {name: weight.clone() for name, weight in one.weights().items()}
    torn = replace(sealed, advantages=-sealed.advantages)  # type: ignore[operator]
    assert one.step(torn, 0) == {"batch_torn": 1.0, "updates_skipped": 1.0}
    assert all(torch.equal(weight, before[name]) for name, weight in one.weights().items())
