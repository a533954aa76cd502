"""A schedule and its second copy: the same draws while nothing is wrong, and a count of those that differ."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest
from factories import group, prompts, settings

from components.scheduling import Schedule, build_schedule
from components.scheduling.checked import Checked
from components.types import Prompt
from tests.benchmarks.health.faults.base import AroundSchedule

KINDS = [
    {"kind": "uniform"},
    {"kind": "ads", "window": 2, "active": 2},
    {"kind": "difficulty_pools"},
    {"kind": "greso"},
    {"kind": "mopps"},
    {"kind": "forecast"},
]


def built(how: dict[str, object]) -> Schedule:
    members = prompts(24)
    return build_schedule({0: members[:12], 1: members[12:]}, settings(schedule=how))


def checked(how: dict[str, object], wrap: Callable[[Schedule], Schedule] = lambda one: one) -> Checked:
    return Checked(wrap(built(how)), built(how))


def step(one: Checked, count: int = 4) -> list[Prompt]:
    drawn = one.next(count)
    one.observe([group([1, 0, 1, 0], prompt=prompt) for prompt in drawn])
    return drawn


@pytest.mark.parametrize("how", KINDS)
def test_two_copies_draw_the_same_and_what_they_draw_is_that_of_the_schedule_alone(how: dict[str, object]) -> None:
    one, alone = checked(how), built(how)
    for _ in range(12):
        drawn = step(one)
        assert drawn == alone.next(4)
        alone.observe([group([1, 0, 1, 0], prompt=prompt) for prompt in drawn])
        assert one.metrics()["differ"] == 0


class Standing(AroundSchedule):
    def next(self, count: int) -> list[Prompt]:
        super().next(count)
        return list(self.inner.prompts[:count])


@pytest.mark.parametrize("how", KINDS)
def test_a_schedule_that_stands_still_differs_and_the_copy_takes_over(how: dict[str, object]) -> None:
    one = checked(how, Standing)
    for _ in range(3):
        step(one)
    assert one.metrics()["differ"] > 0
    one.take_over()
    for _ in range(3):
        expected = deepcopy(one.copy).next(4)
        assert step(one) == expected and one.metrics()["differ"] == 0


class Altered(AroundSchedule):
    def next(self, count: int) -> list[Prompt]:
        return [replace(prompt, answer="0") for prompt in super().next(count)]


def test_a_prompt_that_is_altered_is_no_fault_of_the_draw() -> None:
    one = checked({"kind": "uniform"}, Altered)
    assert step(one)[0].answer == "0" and one.metrics()["differ"] == 0


@pytest.mark.parametrize("how", KINDS)
def test_a_state_is_that_of_both_and_goes_on_as_if_nothing_had_happened(how: dict[str, object]) -> None:
    one, again = checked(how), checked(how)
    for _ in range(4):
        step(one)
    again.load_state_dict(one.state_dict())
    assert step(again) == step(one) and again.metrics() == one.metrics()


def test_a_state_that_only_one_of_them_has_lost_shows_at_the_next_draw() -> None:
    one = checked({"kind": "uniform"})
    for _ in range(3):
        step(one)
    one.load_state_dict({**one.state_dict(), "inner": built({"kind": "uniform"}).state_dict()})
    step(one)
    assert one.metrics()["differ"] > 0
