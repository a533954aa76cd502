"""Pools by measured success, and the gate in front of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from factories import group, prompts
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from components.config.scheduling import GradientGate, PoolsSchedule
from components.scheduling import DifficultyPools, Schedule, Uniform
from components.scheduling.pools import GATES, POOLS, allot, gradient, longest_waiting
from components.types import Group, Prompt


def pools(count: int = 30, seed: int = 0, **changes: Any) -> DifficultyPools:
    chosen = PoolsSchedule.model_validate({"kind": "difficulty_pools", **changes})
    return DifficultyPools(prompts(count), chosen, seed)


def answered(prompt: Prompt, right: int, of: int = 8) -> Group:
    return group([1.0] * right + [0.0] * (of - right), prompt=prompt)


def show(schedule: DifficultyPools, rights: dict[int, int]) -> None:
    """Number of a prompt -> how many of its eight completions were right."""
    every = prompts(len(schedule.prompts))
    schedule.observe([answered(every[number], right) for number, right in rights.items()])


def numbers(drawn: list[Prompt]) -> list[int]:
    return sorted(int(p.id[1:]) for p in drawn)


def shares(schedule: DifficultyPools) -> dict[str, float]:
    metrics = schedule.metrics()
    return {name: metrics[f"pool_{name}"] for name in POOLS[1:]}


# Pools


@pytest.mark.parametrize(
    ("right", "pool"), [(0, "hard"), (2, "hard"), (3, "normal"), (5, "normal"), (6, "easy"), (8, "easy")]
)
def test_the_pool_of_a_prompt_follows_from_its_last_success(right, pool):
    schedule = pools(10)
    assert shares(schedule) == {"normal": 0, "hard": 0, "easy": 0}
    show(schedule, {0: right})
    assert shares(schedule) == {**{"normal": 0, "hard": 0, "easy": 0}, pool: 0.1}


def test_a_prompt_changes_pools_as_the_policy_learns_it():
    schedule, seen = pools(10), []
    for right in (0, 4, 7, 5):
        show(schedule, {3: right})
        seen.append(next(name for name, share in shares(schedule).items() if share))
    assert seen == ["hard", "normal", "easy", "normal"]


def test_a_prompt_that_could_not_be_scored_is_hard_until_it_is_scored_and_says_nothing_about_the_band():
    schedule, unscorable = pools(10), group([None, None], prompt=prompts(1)[0])
    schedule.observe([unscorable])
    assert (shares(schedule), schedule.metrics()["coverage"]) == ({"normal": 0, "hard": 0.1, "easy": 0}, 0.1)
    schedule.observe([unscorable, answered(prompts(2)[1], 4)])
    assert schedule.metrics()["in_band"] == 1
    show(schedule, {0: 8})
    assert shares(schedule) == {"normal": 0.1, "hard": 0, "easy": 0.1}
    schedule.observe([unscorable])
    assert shares(schedule) == {"normal": 0.1, "hard": 0.1, "easy": 0}


@pytest.mark.parametrize("gate", ["gradient", "open"])
def test_prompts_that_can_never_be_scored_take_no_more_than_their_part_of_the_draws(gate):
    schedule, taken = pools(400, gate={"kind": gate}), []
    for _ in range(100):
        drawn = schedule.next(32)
        unscorable = [int(p.id[1:]) < 64 for p in drawn]  # 16 %
        taken.append(sum(unscorable) / 32)
        schedule.observe(
            [group([None] * 8, prompt=p) if bad else answered(p, 4) for p, bad in zip(drawn, unscorable, strict=True)]
        )
    expected = {"gradient": 0.09, "open": 0.2}  # once in 33 draws; the share of hard prompts
    assert np.mean(taken[-66:]) == pytest.approx(expected[gate], abs=0.04)


def test_a_draw_takes_its_share_of_every_pool():
    schedule = pools(40, gate={"kind": "open"}, shares={"easy": 0.25, "normal": 0.25, "hard": 0.25, "unseen": 0.25})
    show(schedule, {n: (0, 4, 8)[n // 10] for n in range(30)})
    for _ in range(5):
        drawn = numbers(schedule.next(8))
        assert [sum(n // 10 == pool for n in drawn) for pool in range(4)] == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("sizes", "count", "takes"),
    [
        ([100, 100, 100, 100], 32, [7, 16, 6, 3]),  # 6.4, 16, 6.4, 3.2
        ([100, 0, 0, 0], 10, [10, 0, 0, 0]),
        ([0, 3, 20, 20], 10, [0, 3, 6, 1]),
        ([1, 1, 1, 1], 10, [1, 1, 1, 1]),
        ([5, 5, 5, 5], 0, [0, 0, 0, 0]),
    ],
)
def test_worked_allotments_of_the_first_draw(sizes, count, takes):
    found = allot(sizes, [0.2, 0.5, 0.2, 0.1], count, 0)
    assert sum(found) == min(count, sum(sizes))
    assert found == takes


four_shares = st.lists(st.integers(0, 20), min_size=4, max_size=4).filter(any)


@given(st.lists(st.integers(0, 40), min_size=4, max_size=4), st.integers(0, 100), four_shares, st.integers(0, 10**6))
def test_an_allotment_gives_all_it_can_and_no_pool_more_than_it_holds(sizes, count, parts, draw):
    found = allot(sizes, [part / sum(parts) for part in parts], count, draw)
    assert sum(found) == min(count, sum(sizes))
    assert all(0 <= take <= size for take, size in zip(found, sizes, strict=True))


@given(st.integers(0, 50), four_shares, st.integers(0, 10**6))
def test_full_pools_give_their_share_rounded_up_or_down(count, parts, draw):
    shares = [part / sum(parts) for part in parts]
    takes = allot([99] * 4, shares, count, draw)
    assert all(abs(take - share * count) < 1 + 1e-8 for take, share in zip(takes, shares, strict=True))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 32])
@pytest.mark.parametrize("every", [1, 2])  # each draw of a run, or only the first of two
def test_however_few_a_draw_takes_every_pool_gives_its_share_in_the_long_run(count, every):
    shares = [0.2, 0.5, 0.2, 0.1]
    given_so_far = np.sum([allot([100] * 4, shares, count, every * draw) for draw in range(100)], 0)
    assert given_so_far == pytest.approx(np.array(shares) * 100 * count, abs=2)


# Gate


def test_a_prompt_without_a_gradient_waits_for_its_retry_and_one_with_a_gradient_only_rests():
    gate, success = gradient(GradientGate(rest=1, retry=3)), np.array([0.0, 1.0, 0.5])
    assert [gate(success, np.full(3, waited)).tolist() for waited in (1, 2, 3, 4)] == [
        [False, False, False],
        [False, False, True],
        [False, False, True],
        [True, True, True],
    ]


def test_the_gate_can_ask_for_more_than_any_gradient():
    gate = gradient(GradientGate(low=0.2, high=0.8, rest=0, retry=9))
    assert gate(np.array([0.125, 0.5, 0.875]), np.ones(3)).tolist() == [False, True, False]


def test_a_prompt_that_could_not_be_scored_waits_like_one_without_a_gradient():
    gate = gradient(GradientGate(rest=1, retry=3))
    assert gate(np.full(3, np.nan), np.array([1, 3, 4])).tolist() == [False, False, True]


def test_an_open_gate_admits_everyone():
    assert GATES["open"](None)(np.zeros(2), np.ones(2)).tolist() == [True, True]


def test_prompts_whose_groups_were_all_equal_are_not_drawn_before_their_retry():
    schedule = pools(30, gate={"kind": "gradient", "retry": 4})
    dead = set(numbers(first := schedule.next(6)))
    schedule.observe([answered(p, 0) for p in first])
    for _ in range(4):
        drawn = schedule.next(6)
        assert not dead & set(numbers(drawn))
        schedule.observe([answered(p, 4) for p in drawn])
    assert schedule.metrics()["closed"] == 12 / 30  # the dead ones, and those of the draw before that rest
    assert dead <= set(numbers(schedule.next(30)))


def test_a_refill_takes_other_prompts_than_the_draw_before_it():
    schedule = pools(30)
    drawn = schedule.next(8)
    schedule.observe([answered(p, 4) for p in drawn])
    assert not set(numbers(drawn)) & set(numbers(schedule.next(8)))


def test_when_no_prompt_is_admitted_those_that_have_waited_longest_are_drawn():
    schedule = pools(12, gate={"kind": "gradient", "retry": 1000})
    draws = []
    for _ in range(6):
        drawn = schedule.next(4)
        draws.append(numbers(drawn))
        schedule.observe([answered(p, 0) for p in drawn])
    assert sorted(n for draw in draws[:3] for n in draw) == list(range(12))
    assert draws[3:] == draws[:3]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.data())
def test_the_longest_waiting_are_distinct_and_none_left_out_has_waited_longer(at, data):
    count = data.draw(st.integers(1, len(at)))
    found = longest_waiting(np.arange(len(at)), np.array(at), count, np.random.default_rng(0)).tolist()
    assert len(set(found)) == count
    assert sorted(at[place] for place in found) == sorted(at)[:count]


def test_among_those_who_have_waited_equally_long_chance_decides_and_not_the_place():
    rng, places = np.random.default_rng(0), np.arange(10)
    drawn = np.bincount(np.concatenate([longest_waiting(places, np.zeros(10), 2, rng) for _ in range(500)]))
    assert drawn.tolist() == pytest.approx([100] * 10, abs=35)


def test_a_closed_gate_does_not_favour_the_first_prompts():
    firsts = []
    for seed in range(20):
        schedule = pools(20, seed, gate={"kind": "gradient", "retry": 1000})
        schedule.observe([answered(p, 0) for p in schedule.next(20)])
        firsts += numbers(schedule.next(4))
    assert np.mean(firsts) == pytest.approx(9.5, abs=2)


def informative(schedule: Schedule, solvable: np.ndarray, draws: int = 60) -> float:
    """Share of groups of eight whose completions differ, where prompt i is solved with probability ``solvable[i]``."""
    rng, found = np.random.default_rng(0), []
    for _ in range(draws):
        drawn = schedule.next(16)
        rights = rng.binomial(8, [solvable[int(p.id[1:])] for p in drawn]).tolist()
        found += [0 < right < 8 for right in rights]
        schedule.observe([answered(*pair) for pair in zip(drawn, rights, strict=True)])
    return float(np.mean(found))


def test_pools_behind_the_gate_draw_more_groups_with_a_gradient_than_uniform_epochs():
    solvable = np.random.default_rng(1).beta(0.3, 0.5, 400)
    gated, ungated = pools(400), pools(400, gate={"kind": "open"})
    uniform = informative(Uniform(prompts(400), 0), solvable)
    assert uniform == pytest.approx(0.51, abs=0.04)
    assert informative(ungated, solvable) > 1.15 * uniform
    assert informative(gated, solvable) > 1.3 * uniform


# Draws and state


@given(st.lists(st.integers(0, 8), min_size=1, max_size=12), st.integers(0, 3), st.integers(1, 12))
def test_whatever_happens_a_draw_is_distinct_and_a_copy_follows_exactly(outcomes, seed, count):
    schedule = pools(15, seed)
    for draw, right in enumerate(outcomes):
        copy = pools(15, seed)
        copy.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
        drawn = schedule.next(count)
        assert len({p.id for p in drawn}) == count
        assert copy.next(count) == drawn
        for other in (schedule, copy):
            other.observe([answered(p, (right + i * draw) % 9) for i, p in enumerate(drawn)])
        assert copy.state_dict() == schedule.state_dict()
        assert copy.metrics() == schedule.metrics()


def test_the_same_seed_draws_the_same_prompts_and_another_seed_does_not():
    assert pools(seed=1).next(8) == pools(seed=1).next(8) != pools(seed=2).next(8)


def test_more_prompts_than_there_are_is_an_error():
    with pytest.raises(ValueError, match="11 distinct prompts are needed, there are 10"):
        pools(10).next(11)


def test_a_state_grows_with_what_was_measured_and_not_with_all_prompts():
    small, large = (json.dumps(pools(count).state_dict()) for count in (800, 8000))
    assert len(large) - len(small) == pytest.approx(7200 / 6, abs=4)  # one bit each, six to a character


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seen", "AA=="),
        ("seen", "!"),
        ("measured", "AAAA"),
        ("success", ""),
        ("measured_at", "/////w=="),
        ("prompts", "0" * 64),
    ],
)
def test_a_state_that_cannot_be_is_refused(field, value):
    schedule = pools(30)
    schedule.observe([answered(p, 4) for p in schedule.next(1)])
    with pytest.raises(ValueError, match="state does not fit"):
        pools(30).load_state_dict({**schedule.state_dict(), field: value})


# Settings


@pytest.mark.parametrize(
    "wrong",
    [
        {"shares": {"easy": 0.5}},
        {"easy": 0.3, "hard": 0.3},
        {"gate": {"kind": "gradient", "low": 0.5, "high": 0.5}},
        {"gate": {"kind": "gradient", "rest": 5, "retry": 4}},
        {"gate": {"kind": "unknown"}},
    ],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValidationError):
        pools(10, **wrong)
