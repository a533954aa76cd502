"""Tests of draws and of updates: silent while nothing is wrong, and quick once something is."""

from __future__ import annotations

import math
import random

import pytest
from factories import group, prompts

from components.health.sequential import PROVEN, Draws, Signs
from components.types import Completion, Group, Score


def drawn(stream: random.Random, chance: float, copied: int = 0, server: int = -1) -> Group:
    """Eight completions of two words, one of which has this probability; the first ``copied`` others are copies."""
    words = [(1,) if stream.random() < chance else (2,) for _ in range(8)]
    words[1 : 1 + copied] = [words[0]] * copied
    logp = {(1,): math.log(chance), (2,): math.log(1 - chance)}
    completions = tuple(Completion(one, (logp[one],), "stop", "", server=server) for one in words)
    return Group(prompts(1)[0], (2, 3), completions, (Score(1.0),) * 8)


@pytest.mark.parametrize("chance", [0.05, 0.5, 0.95])
def test_completions_that_are_drawn_independently_raise_no_alarm(chance: float) -> None:
    draws, stream = Draws(), random.Random(0)
    found = [max(draws.observe([drawn(stream, chance) for _ in range(8)]).values()) for _ in range(300)]
    assert max(found) < PROVEN


@pytest.mark.parametrize("copied", [3, 7])
def test_copies_are_found_within_a_few_steps(copied: int) -> None:
    draws, stream = Draws(), random.Random(0)
    found = [max(draws.observe([drawn(stream, 0.5, copied) for _ in range(8)]).values()) for _ in range(6)]
    assert max(found) > PROVEN


def test_the_server_that_copies_is_named() -> None:
    draws, stream = Draws(), random.Random(0)
    for _ in range(6):
        draws.observe([drawn(stream, 0.5, 7 * (n % 2), server=n % 2) for n in range(8)])
    assert draws.worst == 1
    draws.forget(1)  # it is excluded
    assert draws.worst == 0 and max(draws.observe([]).values()) < PROVEN


def test_a_policy_that_is_sure_repeats_itself_and_proves_nothing() -> None:
    draws = Draws()
    sure = group([1, 1, 1, 1], tokens=[[7]] * 4, logp=0.0)
    assert draws.observe([sure] * 50) == {}


def test_draws_and_signs_outlive_a_restart() -> None:
    draws, again, stream = Draws(), Draws(), random.Random(0)
    draws.observe([drawn(stream, 0.5, 7)])
    again.load_state_dict(draws.state_dict())
    more = [drawn(stream, 0.5, 7)]
    assert again.observe(more) == draws.observe(more)
    signs, same = Signs(), Signs()
    signs.observe({"even": False})
    same.load_state_dict(signs.state_dict())
    assert same.observe({"even": False}) == signs.observe({"even": False})


# Updates that do what they are made for


def test_updates_of_which_some_fail_by_chance_raise_no_alarm() -> None:
    signs, stream = Signs(), random.Random(0)
    found = [signs.observe({"even": stream.random() < 0.85, "odd": stream.random() < 0.85}) for _ in range(500)]
    assert max(one for one in found if one is not None) < 9.2


def test_updates_of_one_family_that_go_the_wrong_way_are_found_and_named() -> None:
    signs = Signs()
    found = [signs.observe({"even": True, "odd": False}) for _ in range(10)]
    assert found[2] < 9.2 < max(found) and signs.worst == "odd"  # type: ignore[operator,type-var]


def test_a_step_without_such_a_look_says_nothing() -> None:
    assert Signs().observe({}) is None
