"""Whether an update did what it was made for: seen by scoring a few of its rows again."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from factories import policy
from test_learner import learner_of, ready, sampled

from components.training.update import Effect, effect, rows_of


def after(sign: float = 1.0, lr: float = 1e-3, drift: float = 0.0, exact: bool = True) -> Effect | None:
    """What an update on advantages of this sign did; the sampler is off by ``drift`` nats."""
    learner = learner_of(policy(), learner={"lr": lr})
    built = ready(learner, sampled(), drift=drift)
    rows = rows_of(learner, built, sampled(), 0, exact=exact)
    learner.step(replace(built, advantages=sign * built.advantages), 0)  # type: ignore[operator]
    return None if rows is None else effect(learner, rows)


def test_a_sound_update_raises_what_had_positive_advantages() -> None:
    found = after()
    assert found is not None and set(found.raised.values()) == {True} and found.moved > 0


def test_an_update_of_the_wrong_sign_does_not_wherever_the_sign_was_lost() -> None:
    found = after(-1.0)
    assert found is not None and set(found.raised.values()) == {False}


def test_a_sampler_that_computes_otherwise_is_no_part_of_what_an_update_does() -> None:
    found, sound = after(lr=1e-5, drift=0.5, exact=False), after(lr=1e-5)
    assert found is not None and sound is not None
    assert set(found.raised.values()) == {True}
    assert found.moved == pytest.approx(sound.moved, rel=0.5, abs=1e-6)


def test_a_larger_rate_moves_the_policy_further() -> None:
    small, large = after(lr=1e-4), after(lr=1e-2)
    assert small is not None and large is not None and large.moved > 10 * small.moved


def test_tokens_without_a_log_probability_are_left_out_and_a_row_of_such_tokens_says_nothing() -> None:
    learner = learner_of(policy())
    built = ready(learner, sampled(), drift=0.0)
    rows = rows_of(learner, built, sampled(), 0, exact=True)
    assert rows is not None
    last = rows.before.clone()
    last[torch.arange(len(last)), rows.part.response_mask.sum(1) - 1] = math.nan
    assert effect(learner, replace(rows, before=torch.full_like(last, math.nan))) is None
    found = effect(learner, replace(rows, before=last))
    assert found is None or math.isfinite(found.moved)


@pytest.mark.parametrize("factor", [0.0, None])
def test_a_batch_without_both_signs_says_nothing(factor: float | None) -> None:
    learner = learner_of(policy())
    batch = ready(learner, sampled(), drift=0.0)
    advantages = batch.advantages.abs() if factor is None else factor * batch.advantages  # type: ignore[union-attr,operator]
    assert rows_of(learner, replace(batch, advantages=advantages), sampled(), 0, exact=True) is None


def test_families_take_turns_two_in_a_step() -> None:
    learner = learner_of(policy())
    groups = [
        replace(one, prompt=replace(one.prompt, family=name))
        for one, name in zip([*sampled(), sampled()[0]], "abc", strict=True)
    ]
    built = ready(learner, groups, drift=0.0)
    turns = [rows_of(learner, built, groups, turn, exact=True) for turn in range(3)]
    assert [sorted(rows.chosen) for rows in turns if rows] == [["a", "b"], ["a", "c"], ["b", "c"]]
