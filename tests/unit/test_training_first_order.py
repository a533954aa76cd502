"""Whether an update did what it was made for: seen by scoring a few of its rows again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from factories import policy
from test_learner import learner_of, ready, sampled

from components.learner import Batch, Learner
from components.training.first_order import effect


def updated(sign: float = 1.0, lr: float = 1e-3) -> tuple[Learner, Batch]:
    """A learner after one update on advantages of this sign, and the batch as it was built."""
    learner = learner_of(policy(), learner={"lr": lr})
    built = ready(learner, sampled(), drift=0.0)
    learner.step(replace(built, advantages=sign * built.advantages), 0)  # type: ignore[operator]
    return learner, built


def test_a_sound_update_raises_what_had_positive_advantages() -> None:
    learner, batch = updated()
    found = effect(learner, batch, sampled())
    assert found is not None and set(found.raised.values()) == {True} and found.moved > 0


def test_an_update_of_the_wrong_sign_does_not_wherever_the_sign_was_lost() -> None:
    learner, batch = updated(-1.0)
    found = effect(learner, batch, sampled())
    assert found is not None and set(found.raised.values()) == {False}


def test_a_larger_rate_moves_the_policy_further() -> None:
    moved = []
    for lr in (1e-4, 1e-2):
        learner, batch = updated(lr=lr)
        found = effect(learner, batch, sampled())
        moved.append(found.moved if found is not None else 0.0)
    assert moved[1] > 100 * moved[0]


@pytest.mark.parametrize("factor", [0.0, None])
def test_a_batch_without_both_signs_says_nothing(factor: float | None) -> None:
    learner, batch = updated()
    advantages = batch.advantages.abs() if factor is None else factor * batch.advantages  # type: ignore[union-attr,operator]
    assert effect(learner, replace(batch, advantages=advantages), sampled()) is None
