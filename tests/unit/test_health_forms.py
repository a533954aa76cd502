"""Whether held-out completions lose their form."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from factories import group

from components.health.forms import Forms
from components.types import Group

PROVEN = 9.2


def answers(stream: random.Random, *, ended: float = 0.95, scorable: float = 0.98, length: float = 10.0) -> list[Group]:
    """Thirty groups of four completions of about this length."""
    found = []
    for _ in range(30):
        tokens = [[5] * max(1, round(stream.gauss(length, 2))) for _ in range(4)]
        made = group([1.0 if stream.random() < scorable else None for _ in range(4)], tokens=tokens)
        completions = tuple(
            one if stream.random() < ended else replace(one, finish_reason="length") for one in made.completions
        )
        found.append(replace(made, completions=completions))
    return found


def test_completions_that_keep_their_form_raise_no_alarm() -> None:
    forms, stream = Forms(), random.Random(0)
    found = [forms.observe(step, answers(stream)) for step in range(100)]
    assert set(found[0]) == {"ended", "scorable", "usual_length"}
    assert max(max(one.values()) for one in found) < PROVEN


@pytest.mark.parametrize(
    ("change", "name"), [({"ended": 0.6}, "ended"), ({"scorable": 0.7}, "scorable"), ({"length": 16.0}, "usual_length")]
)
def test_a_form_that_is_lost_is_found_by_its_name(change: dict[str, float], name: str) -> None:
    forms, stream = Forms(), random.Random(0)
    for step in range(5):
        forms.observe(step, answers(stream))
    found = [forms.observe(step, answers(stream, **change)) for step in range(5, 10)]
    assert max(found[-1], key=lambda one: found[-1][one]) == name and found[-1][name] > PROVEN


def test_what_is_known_outlives_a_restart_and_nothing_measured_says_nothing() -> None:
    forms, again, stream = Forms(), Forms(), random.Random(0)
    forms.observe(0, answers(stream))
    again.load_state_dict(forms.state_dict())
    more = answers(stream)
    assert again.observe(1, more) == forms.observe(1, more)
    assert forms.observe(2, []) == {}
