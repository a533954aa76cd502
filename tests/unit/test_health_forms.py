"""Whether held-out completions lose their form."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from factories import group

from components.health.falls import Forms
from components.types import Group

PROVEN = 9.2


def answers(
    stream: random.Random,
    *,
    ended: float = 0.95,
    scorable: float = 0.98,
    length: float = 10.0,
    surprisal: float = 0.5,
    tidy: float = 0.9,
) -> list[Group]:
    """Thirty groups of four completions of about this length and surprisal; a share of them is tidy."""
    found = []
    for _ in range(30):
        tokens = [[5] * max(1, round(stream.gauss(length, 2))) for _ in range(4)]
        made = group([1.0 if stream.random() < scorable else None for _ in range(4)], tokens=tokens)
        completions = tuple(
            replace(
                one,
                finish_reason=one.finish_reason if stream.random() < ended else "length",
                logprobs=(-stream.expovariate(1 / surprisal),) * len(one.logprobs),
            )
            for one in made.completions
        )
        scores = tuple(replace(one, parts={"tidy": float(stream.random() < tidy)}) for one in made.scores)
        found.append(replace(made, completions=completions, scores=scores))
    return found


def test_completions_that_keep_their_form_raise_no_alarm() -> None:
    forms, stream = Forms(), random.Random(0)
    found = [forms.observe(step, answers(stream)) for step in range(100)]
    assert set(found[0]) == {"ended", "scorable", "length", "surprisal", "parts"}
    assert max(max(one.values()) for one in found) < PROVEN


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"ended": 0.6}, "ended"),
        ({"scorable": 0.7}, "scorable"),
        ({"length": 16.0}, "length"),
        ({"surprisal": 2.0}, "surprisal"),
        ({"length": 6.0, "surprisal": 0.1}, ""),
    ],
)
def test_a_form_that_is_lost_is_found_by_its_name(change: dict[str, float], name: str) -> None:
    forms, stream = Forms(), random.Random(0)
    for step in range(5):
        forms.observe(step, answers(stream))
    found = [forms.observe(step, answers(stream, **change)) for step in range(5, 10)]
    assert [one for one, nats in found[-1].items() if nats > PROVEN] == ([name] if name else [])


def test_a_reward_part_that_all_completions_had_is_missed_and_one_that_few_had_is_not() -> None:
    found = []
    for tidy in (1.0, 0.5):
        forms, stream = Forms(), random.Random(0)
        for step in range(5):
            forms.observe(step, answers(stream, tidy=tidy))
        found.append([forms.observe(step, answers(stream, tidy=0.4))["parts"] for step in range(5, 10)][-1])
    assert found[0] > PROVEN > found[1]


def test_what_is_known_outlives_a_restart_and_nothing_measured_says_nothing() -> None:
    forms, again, stream = Forms(), Forms(), random.Random(0)
    forms.observe(0, answers(stream))
    again.load_state_dict(forms.state_dict())
    more = answers(stream)
    assert again.observe(1, more) == forms.observe(1, more)
    assert forms.observe(2, []) == {}
