"""A model of each prompt's success, and the schedules that skip a prompt by chance."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from math import comb

import numpy as np
import pytest
from factories import group, prompts
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import beta as beta_function

from components.config.scheduling import ForecastSchedule, GresoSchedule, MoppsSchedule
from components.scheduling import Schedule, Uniform
from components.scheduling.checks import Array
from components.scheduling.forecast import Forecast, SuccessModel, mixed, still_mixed
from components.scheduling.greso import Greso
from components.scheduling.mopps import Mopps
from components.scheduling.uniform import Walk
from components.types import Prompt

PARAMETERS = st.floats(0.1, 30)


# The model


@pytest.mark.parametrize(
    ("a", "b", "count", "expected"),
    [(1, 1, 8, 1 - 2 / 9), (1, 1, 2, 1 / 3), (1e6, 1e6, 8, 1 - 2 / 256), (1, 99, 8, 0.0748)],
)
def test_worked_chances_of_a_mixed_group(a, b, count, expected):
    assert mixed(np.array([a]), np.array([b]), count)[0] == pytest.approx(expected, rel=1e-3)


def chance_of(a: float, b: float, right: int, count: int) -> float:
    """Beta-binomial probability of so many right ones."""
    return comb(count, right) * beta_function(a + right, b + count - right) / beta_function(a, b)


@given(PARAMETERS, PARAMETERS, st.integers(0, 4), st.integers(0, 4), st.integers(1, 5))
def test_the_chance_that_a_group_ends_mixed_is_that_of_all_its_continuations(a, b, right, wrong, more):
    found = still_mixed(*(np.array([float(value)]) for value in (a, b, right, wrong)), more)[0]
    ends = ((right + got, wrong + more - got, chance_of(a + right, b + wrong, got, more)) for got in range(more + 1))
    assert found == pytest.approx(sum(chance for r, w, chance in ends if r and w), abs=1e-6)


def model(count: int, kinds: int = 1, memory: float = 0.9) -> SuccessModel:
    return SuccessModel([str(number % kinds) for number in range(count)], memory)


def note(one: SuccessModel, right: dict[int, int], draw: int, of: int = 8) -> None:
    places, values = np.array(list(right)), np.array([float(value) for value in right.values()])
    one.note(places, values, of - values, draw)


def mean(one: SuccessModel, place: int, draw: int) -> float:
    a, b = one.posterior(np.array([place]), draw)
    return float(a[0] / (a[0] + b[0]))


def test_without_a_measurement_any_success_is_as_likely():
    assert [values.tolist() for values in model(2).posterior(np.array([0, 1]), 0)] == [[1, 1], [1, 1]]


def test_an_unseen_prompt_has_the_forecast_of_its_kind():
    one = model(40, kinds=2)
    note(one, {place: 8 if place % 2 else 0 for place in range(20)}, draw=0)
    assert mean(one, 21, 1) > 0.8
    assert mean(one, 20, 1) < 0.2


def test_prompts_that_are_alike_make_a_strong_prior_and_prompts_that_differ_a_weak_one():
    alike, differ = model(400), model(400)
    rng = np.random.default_rng(0)
    note(alike, {place: int(rng.binomial(8, 0.5)) for place in range(200)}, draw=0)
    note(differ, {place: 8 * (place % 2) for place in range(200)}, draw=0)
    unseen = np.array([300])
    assert mixed(*alike.posterior(unseen, 1), 8)[0] > 0.95
    assert mixed(*differ.posterior(unseen, 1), 8)[0] < 0.4


def test_an_old_measurement_gives_way_to_the_prior():
    one = model(2, memory=0.5)
    note(one, {0: 8}, draw=0)
    close, far = mean(one, 0, 1), mean(one, 0, 30)
    assert close > far
    assert far == pytest.approx(mean(one, 1, 30), abs=1e-6)


def test_worked_counts_of_two_measurements_three_draws_apart():
    one = model(1, memory=0.5)
    note(one, {0: 8}, draw=0)
    note(one, {0: 2}, draw=3)
    assert (one.right[0], one.wrong[0]) == (8 * 0.5**3 + 2, 6)


def test_two_groups_of_one_prompt_in_a_draw_count_as_one_of_both():
    twice, once = model(2), model(2)
    twice.note(np.array([0, 1, 0]), np.array([8.0, 1.0, 0.0]), np.array([0.0, 7.0, 8.0]), 0)
    once.note(np.array([0, 1]), np.array([8.0, 1.0]), np.array([8.0, 7.0]), 0)
    assert (twice.right.tolist(), twice.wrong.tolist()) == ([8, 1], [8, 7])
    assert twice.state_dict() == once.state_dict()


def test_what_could_not_be_scored_says_nothing():
    one = model(2)
    one.note(np.array([0]), np.array([0.0]), np.array([0.0]), 0)
    assert mean(one, 0, 1) == 0.5


def test_forecasts_of_a_policy_that_learns_are_better_than_what_was_last_measured():
    """Success of 200 prompts rises at different times; a tenth of them is drawn at a time."""
    rng = np.random.default_rng(1)
    one, start = model(200), rng.uniform(0, 60, 200)
    last = np.full(200, np.nan)
    forecast, repeated = [], []
    for draw in range(60):
        places = rng.choice(200, 20, replace=False)
        right = rng.binomial(8, np.clip((draw - start) / 15 + 0.5, 0.02, 0.98)[places])
        chance, outcome = mixed(*one.posterior(places, draw), 8), (right > 0) & (right < 8)
        known = ~np.isnan(last[places])
        forecast += ((chance - outcome) ** 2)[known].tolist()
        repeated += ((((last[places] > 0) & (last[places] < 8)) != outcome)[known] ** 2).tolist()
        one.note(places, right.astype(float), 8.0 - right, draw)
        last[places] = right
    assert np.mean(forecast) < 0.8 * np.mean(repeated)


# Skipping by chance


class Fixed(Walk):
    def __init__(self, count: int, chance: Callable[[Array], Array], *, thin: bool = False) -> None:
        super().__init__(prompts(count), 3, thin=thin)
        self.chance = chance

    def admission(self, places: Array) -> Array:
        return self.chance(places)


def names(drawn: list[Prompt]) -> list[str]:
    return [prompt.id for prompt in drawn]


def test_where_nothing_is_skipped_the_draws_are_those_of_uniform():
    one, other = Fixed(100, lambda places: np.ones(len(places))), Uniform(prompts(100), 3)
    assert [names(one.next(8)) for _ in range(40)] == [names(other.next(8)) for _ in range(40)]
    assert one.metrics()["skipped"] == 0


@pytest.mark.parametrize("chance", [0.02, 0.3])
def test_a_draw_is_distinct_and_full_however_many_are_skipped(chance):
    one = Fixed(40, lambda places: np.full(len(places), chance))
    assert all(len(set(names(one.next(32)))) == 32 for _ in range(20))


def test_a_thin_epoch_holds_every_admitted_prompt_once_and_no_skipped_one():
    one = Fixed(400, lambda places: np.where(places % 2 == 0, 1.0, 1e-12), thin=True)
    drawn = [prompt for _ in range(40) for prompt in one.next(10)]
    assert sorted(names(drawn)) == sorted(names(prompts(400)[::2]))
    assert one.metrics()["skipped"] == 200


def test_a_thin_draw_is_never_empty_and_has_the_most_promising_prompt():
    one = Fixed(40, lambda places: 1e-12 * (1 + places), thin=True)
    order = Uniform(prompts(40), 3)
    for _ in range(4):
        best = max(order.next(10), key=prompts(40).index)
        assert one.next(10) == [best]


def test_a_draw_larger_than_the_data_repeats_prompts():
    assert len(Fixed(5, lambda places: np.full(len(places), 0.5)).next(12)) == 12


def test_a_prompt_is_drawn_as_often_as_its_probability_says():
    one = Fixed(400, lambda places: np.where(places < 200, 0.25, 1.0))
    drawn = [int(prompt.id.lstrip("p")) for _ in range(500) for prompt in one.next(20)]
    low, high = (sum(place < 200 for place in drawn), sum(place >= 200 for place in drawn))
    assert low / high == pytest.approx(0.25, rel=0.1)


def dead(name: str) -> Schedule:
    """A schedule under which the first half of 60 prompts is never right and the second half is mixed."""
    one = schedules()[name]()
    for _ in range(60):
        drawn = one.next(10)
        one.observe([group([0.0] * 8 if index(p) < 30 else [1.0, 0.0] * 4, prompt=p) for p in drawn])
    return one


def index(prompt: Prompt) -> int:
    return [p.id for p in prompts(60)].index(prompt.id)


def schedules() -> dict[str, Callable[[], Schedule]]:
    return {
        "greso": lambda: Greso(prompts(60), GresoSchedule(kind="greso"), 3),
        "mopps": lambda: Mopps(prompts(60), MoppsSchedule(kind="mopps"), 3),
        "forecast": lambda: Forecast(prompts(60), ForecastSchedule(kind="forecast"), 8, 3),
    }


@pytest.mark.parametrize("name", ["greso", "mopps", "forecast"])
def test_dead_prompts_become_rare(name):
    one = dead(name)
    drawn = [index(p) < 30 for _ in range(20) for p in one.next(10)]
    assert np.mean(drawn) < 0.35  # of half of the prompts


@pytest.mark.parametrize("name", ["greso", "forecast"])
def test_a_dead_prompt_is_never_starved(name):
    one = dead(name)
    seen: set[int] = set()
    for _ in range(600):
        drawn = one.next(10)
        one.observe([group([0.0] * 8 if index(p) < 30 else [1.0, 0.0] * 4, prompt=p) for p in drawn])
        seen |= {index(p) for p in drawn}
        if len(seen) == 60:
            break
    assert seen == set(range(60))


def test_the_forecast_admits_dead_prompts_with_the_least_probability_and_others_for_sure():
    one = Forecast(prompts(60), ForecastSchedule(kind="forecast", memory=1.0, explore=0.07), 8, 3)
    for _ in range(20):
        one.observe([group([0.0] * 8 if index(p) % 2 else [1.0, 0.0] * 4, prompt=p) for p in one.next(60)])
    assert one.admission(np.arange(60)).tolist() == [1.0, 0.07] * 30


def test_greso_draws_by_the_length_of_the_streak_and_follows_its_targets():
    one = Greso(prompts(4), GresoSchedule(kind="greso", explore=0.5, move=0.1), 0)
    for _ in range(3):
        one.observe([group([0.0] * 4, prompt=prompts(4)[0]), group([1.0] * 4, prompt=prompts(4)[1])])
    hard, easy = 0.5 - 3 * 0.1, 0.5 - 3 * 0.1
    assert one.admission(np.array([0, 1, 2])) == pytest.approx([max(hard**3, 0.01), max(easy**3, 0.01), 1.0])
    one.observe([group([1.0, 0.0], prompt=prompts(4)[0])])
    assert one.admission(np.array([0]))[0] == 1.0


def test_mopps_keeps_the_posterior_of_the_paper():
    one = Mopps(prompts(1), MoppsSchedule(kind="mopps", memory=0.5), 0)
    for right in (6, 2):
        one.observe([group([1.0] * right + [0.0] * (8 - right), prompt=prompts(1)[0])])
    saved = json.loads(json.dumps(one.state_dict()))
    other = Mopps(prompts(1), MoppsSchedule(kind="mopps", memory=0.5), 0)
    other.load_state_dict(saved)
    assert (other._a[0], other._b[0]) == (0.5 * (0.5 + 0.5 + 6) + 0.5 + 2, 0.5 * (0.5 + 0.5 + 2) + 0.5 + 6)


@pytest.mark.parametrize(("right", "first"), list(product([0, 2, 4], [4])))
def test_the_forecast_completes_a_group_that_is_likely_to_be_mixed(right, first):
    known, unknown = (Forecast(prompts(2), ForecastSchedule(kind="forecast"), 8, 3) for _ in range(2))
    for one, success in ((known, 8), (unknown, 4)):
        one.next(2)
        for _ in range(6):
            one.observe([group([1.0] * success + [0.0] * (8 - success), prompt=p) for p in prompts(2)])
    begun = [group([1.0] * right + [0.0] * (first - right), prompt=prompts(2)[0])]
    assert unknown.worthwhile(begun, 8) == [True]
    assert known.worthwhile(begun, 8) == [right < 4]


def test_a_group_of_one_partial_accuracy_counts_as_one_that_is_all_wrong():
    alike, wrong, mixed_ = (Forecast(prompts(1), ForecastSchedule(kind="forecast"), 8, 3) for _ in range(3))
    for one, accuracies in ((alike, [0.5] * 8), (wrong, [0.0] * 8), (mixed_, [0.5] * 4 + [1.0] * 4)):
        one.next(1)
        one.observe([group(accuracies, prompt=prompts(1)[0])])
    assert alike.state_dict() == wrong.state_dict() != mixed_.state_dict()
