"""Which prompts come next: uniform epochs, and Adaptive Data Scheduling with its windows."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import comb

import pytest
from factories import group, prompt, prompts, settings
from hypothesis import given
from hypothesis import strategies as st

from components.config.scheduling import (
    AdsSchedule,
    ForecastSchedule,
    GresoSchedule,
    MoppsSchedule,
    PoolsSchedule,
)
from components.errors import InputError
from components.scheduling import SCHEDULES, Ads, DifficultyPools, Schedule, Uniform, build_schedule
from components.scheduling.ads import EASIER, HARDER, STAY, direction, raised, shift
from components.scheduling.forecast import Forecast
from components.scheduling.greso import Greso
from components.scheduling.mopps import Mopps
from components.types import Group, Prompt

MOVES = ("adjacent", "outside")


# Windows


@pytest.mark.parametrize(
    ("window", "directions", "expected"),
    [
        ([0, 1, 2, 3], dict.fromkeys(range(4), HARDER), [1, 2, 3, 4]),
        ([0, 1, 2, 3], dict.fromkeys(range(4), EASIER), [0, 1, 2, 3]),
        ([0, 1, 2, 3], {0: HARDER, 1: STAY, 2: EASIER, 3: HARDER}, [0, 1, 2, 4]),
        ([4, 5, 6, 7], dict.fromkeys(range(4, 8), EASIER), [3, 4, 5, 6]),
        ([6, 7, 8, 9], dict.fromkeys(range(6, 10), HARDER), [6, 7, 8, 9]),
    ],
)
def test_worked_windows_that_crawl_one_slot_a_visit(window, directions, expected):
    assert shift(window, directions, 10, "adjacent") == expected


@pytest.mark.parametrize(
    ("window", "directions", "expected"),
    [
        ([0, 1, 2, 3], dict.fromkeys(range(4), HARDER), [4, 5, 6, 7]),
        ([0, 1, 2, 3], {1: HARDER}, [0, 2, 3, 4]),
        ([4, 5, 6, 7], dict.fromkeys(range(4, 8), EASIER), [0, 1, 2, 3]),
        ([4, 5, 6, 7], {5: EASIER, 6: HARDER}, [3, 4, 7, 8]),
        ([6, 7, 8, 9], {6: HARDER}, [6, 7, 8, 9]),
        ([6, 8], {6: HARDER, 8: HARDER}, [7, 9]),  # the harder one moves first
    ],
)
def test_worked_windows_whose_movers_jump_over_the_window(window, directions, expected):
    assert shift(window, directions, 10, "outside") == expected


@st.composite
def visits(draw):
    size = draw(st.integers(1, 30))
    window = sorted(draw(st.sets(st.integers(0, size - 1), min_size=1)))
    directions = {position: draw(st.sampled_from([EASIER, STAY, HARDER])) for position in window}
    return window, directions, size, draw(st.sampled_from(MOVES))


@given(visits())
def test_a_window_keeps_its_size_and_holds_distinct_positions_of_the_cluster(visit):
    window, directions, size, move = visit
    found = shift(window, directions, size, move)
    assert found == sorted(set(found))
    assert len(found) == len(window)
    assert 0 <= found[0] <= found[-1] < size


@given(visits())
def test_prompts_at_the_boundary_keep_their_slots(visit):
    window, directions, size, move = visit
    assert {p for p in window if directions[p] == STAY} <= set(shift(window, directions, size, move))


@given(visits())
def test_without_feedback_or_without_a_direction_nothing_moves(visit):
    window, _, size, move = visit
    assert shift(window, {}, size, move) == shift(window, dict.fromkeys(window, STAY), size, move) == window


@given(visits())
def test_a_window_moves_only_where_it_is_sent(visit):
    window, _, size, move = visit
    harder = shift(window, dict.fromkeys(window, HARDER), size, move)
    easier = shift(window, dict.fromkeys(window, EASIER), size, move)
    assert all(new >= old for old, new in zip(window, harder, strict=True))
    assert all(new <= old for old, new in zip(window, easier, strict=True))


def test_a_window_as_large_as_its_cluster_never_moves():
    assert shift([0, 1, 2], dict.fromkeys(range(3), HARDER), 3, "adjacent") == [0, 1, 2]


# Band


@pytest.mark.parametrize(("samples", "kept"), [(8, [3, 4, 5]), (16, [6, 7, 8, 9, 10])])
def test_the_band_on_the_grid_of_a_group(samples, kept):
    assert [c for c in range(samples + 1) if direction(c / samples, 0.17) == STAY] == kept


def test_below_the_band_is_too_hard_and_above_it_too_easy():
    assert [direction(c / 8, 0.17) for c in range(9)] == [EASIER] * 3 + [STAY] * 3 + [HARDER] * 3


@pytest.mark.parametrize(("p", "chance"), [(0.5, 0.711), (0.33, 0.505), (0.67, 0.505), (0.25, 0.317), (0.1, 0.038)])
def test_worked_chance_that_a_prompt_stays(p, chance):
    kept = sum(comb(8, c) * p**c * (1 - p) ** (8 - c) for c in range(9) if direction(c / 8, 0.17) == STAY)
    assert kept == pytest.approx(chance, abs=6e-4)


# ADS


def clusters(*sizes: int) -> dict[int, list[Prompt]]:
    """Numbered from 0; the prompts of cluster k are k00, k01, ... from easy to hard."""
    names = [[f"{k}{i:02d}" for i in range(size)] for k, size in enumerate(sizes)]
    return {k: [Prompt(name, "q", "a", "s") for name in row] for k, row in enumerate(names)}


def ads(*sizes: int, seed: int = 0, **changes: object) -> Ads:
    chosen = {"window": 4, "active": 2, **changes}
    return Ads(clusters(*(sizes or (10, 10, 10, 10))), AdsSchedule.model_validate(chosen), seed)


def answered(prompt: Prompt, right: int, of: int = 8) -> Group:
    return group([1.0] * right + [0.0] * (of - right), prompt=prompt)


def with_state(schedule: Ads, **changes: object) -> Ads:
    schedule.load_state_dict({**schedule.state_dict(), **changes})
    return schedule


def state(schedule: Ads) -> dict:
    return json.loads(json.dumps(schedule.state_dict()))


def test_a_draw_is_whole_windows_of_distinct_clusters():
    schedule = ads()
    for _ in range(20):
        drawn = [p.id for p in schedule.next(8)]
        assert len(set(drawn)) == 8
        assert len({name[0] for name in drawn}) == 2
        assert {name[1:] for name in drawn} == {"00", "01", "02", "03"}


EQUAL = [0.25] * 4


@pytest.mark.parametrize(
    ("sizes", "changes", "success", "expected"),
    [
        ((), {}, [0.8, 0.2, 0.5, 0.5], [0.295, 0.205, 0.25, 0.25]),
        ((), {"alpha": 0.0}, [0.8, 0.2, 0.5, 0.5], EQUAL),  # nothing changes
        ((), {"alpha": 1.0}, [0.8, 0.2, 0.5, 0.5], [0.4, 0.1, 0.25, 0.25]),  # follows success at once
        ((), {}, [0.3] * 4, EQUAL),
        ((), {}, [0.0] * 4, EQUAL),
        # The weight can be the variance of success.
        ((), {"weight": "boundary", "alpha": 1.0}, [0.5, 0.9, 0.1, 1.0], [0.25 / 0.43, 0.09 / 0.43, 0.09 / 0.43, 0]),
        ((), {"weight": "boundary"}, [0.0, 1.0, 1.0, 0.0], EQUAL),  # all weights are zero
        # A floor is one, whatever the other clusters take.
        ([4] * 8, {"min_prob": 0.9, "alpha": 1.0}, [1.0] + [0.0] * 7, [1 - 7 * 0.9 / 8] + [0.9 / 8] * 7),
    ],
)
def test_worked_updates_of_the_cluster_probabilities(sizes, changes, success, expected):
    schedule = with_state(ads(*sizes, **changes), success=success)
    schedule.observe([])
    assert state(schedule)["probability"] == pytest.approx(expected)


def test_a_cluster_without_success_fades_whether_or_not_it_is_visited():
    schedule = with_state(ads(), success=[0.0, 0.5, 0.5, 0.5])
    shares = []
    for _ in range(3):
        schedule.observe([])
        shares.append(state(schedule)["probability"][0])
    assert shares == pytest.approx([0.25 * 0.7, 0.25 * 0.7**2, 0.25 * 0.7**3])


@pytest.mark.parametrize(("steps", "share"), [(1, 0.0109), (5, 0.0026), (10, 0.00044), (20, 1.2e-5)])
def test_worked_decay_of_a_cluster_that_nothing_in_it_solves(steps, share):
    schedule = with_state(ads(*[4] * 64), success=[0.0] + [0.5] * 63)
    for _ in range(steps):
        schedule.observe([])
    assert state(schedule)["probability"][0] == pytest.approx(share, rel=0.05)


def test_a_floor_keeps_a_cluster_without_success_in_the_draw():
    schedule = with_state(ads(min_prob=0.2), success=[0.0, 0.5, 0.5, 0.5])
    for _ in range(50):
        schedule.observe([])
    assert state(schedule)["probability"] == pytest.approx([0.05] + [0.95 / 3] * 3)


@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=8).filter(any), st.sampled_from([0.0, 1e-12, 0.3, 0.9, 0.999])
)
def test_raised_shares_add_up_to_one_keep_their_order_and_none_is_below_the_floor(parts, least):
    shares, floor = [part / sum(parts) for part in parts], least / len(parts)
    found = raised(shares, floor)
    assert min(found) >= floor
    assert sum(found) == pytest.approx(1)
    assert all(found[i] <= found[j] for i in range(len(parts)) for j in range(len(parts)) if shares[i] <= shares[j])
    assert found == shares or min(shares) < floor


def test_success_is_that_of_the_last_visit_and_unvisited_clusters_keep_theirs():
    schedule = ads()
    members = clusters(10, 10)[1]
    schedule.observe([answered(members[0], 8), answered(members[1], 2)])
    schedule.observe([answered(members[0], 8), answered(members[1], 8)])
    assert state(schedule)["success"] == [0.5, 1.0, 0.5, 0.5]


def test_only_the_windows_of_visited_clusters_move():
    schedule = ads()
    schedule.observe([answered(p, 8) for p in clusters(10)[0][:4]])
    assert state(schedule)["windows"] == [[1, 2, 3, 4]] + [[0, 1, 2, 3]] * 3


def test_the_settings_choose_how_a_window_moves():
    schedule = ads(move="outside")
    schedule.observe([answered(p, 8) for p in clusters(10)[0][:4]])
    assert state(schedule)["windows"][0] == [4, 5, 6, 7]


def test_a_prompt_that_could_not_be_scored_says_nothing_about_its_cluster():
    schedule = ads()
    before = state(schedule)
    schedule.observe([group([None, None], prompt=clusters(10)[0][0])])
    assert {**state(schedule), "seen": before["seen"]} == before
    assert schedule.metrics()["coverage"] == 1 / 40


def test_a_reset_restores_the_first_state_and_nothing_resets_by_default():
    schedule, never = ads(reset_draws=2), ads()
    fresh = state(schedule)
    for s in (schedule, never):
        for _ in range(2):
            s.observe([answered(p, 8) for p in s.next(8)])
    moved = state(schedule)
    assert moved["windows"] == state(never)["windows"] != fresh["windows"]
    schedule.next(8)
    never.next(8)
    keys = ("success", "probability", "windows")
    assert [state(schedule)[key] for key in keys] == [fresh[key] for key in keys]
    assert state(never)["windows"] == moved["windows"]


@pytest.mark.parametrize(("sizes", "epoch"), [((10, 10, 10, 10), 5), ((9, 9, 9, 4), 3), ((4, 4), 1)])
def test_the_automatic_reset_comes_after_as_many_draws_as_the_data_hold(sizes, epoch):
    schedule = ads(*sizes, reset_draws="auto")
    fresh = state(schedule)
    for draw in range(2 * epoch):
        drawn = schedule.next(8)
        if draw in (0, epoch):  # the first of an epoch
            assert {p.id[1:] for p in drawn} == {"00", "01", "02", "03"}
            assert [state(schedule)[key] for key in ("success", "probability")] == [
                fresh[key] for key in ("success", "probability")
            ]
        schedule.observe([answered(p, 8) for p in drawn])


@st.composite
def runs(draw):
    """Settings, sizes of clusters and the success of every prompt of every draw."""
    sizes = draw(st.lists(st.integers(3, 9), min_size=2, max_size=5))
    changes = {
        "window": draw(st.integers(1, 3)),
        "active": draw(st.integers(1, 2)),
        "alpha": draw(st.floats(0, 1)),
        "min_prob": draw(st.sampled_from([0.0, 0.3])),
        "move": draw(st.sampled_from(MOVES)),
        "weight": draw(st.sampled_from(["success", "boundary"])),
        "reset_draws": draw(st.sampled_from([0, 2, "auto"])),
    }
    return sizes, changes, draw(st.lists(st.integers(0, 8), min_size=1, max_size=8)), draw(st.integers(0, 3))


@given(runs())
def test_whatever_happens_a_draw_is_distinct_shares_add_up_and_a_copy_follows_exactly(run):
    sizes, changes, outcomes, seed = run
    schedule = ads(*sizes, seed=seed, **changes)
    count = changes["active"] * changes["window"]
    for draw, right in enumerate(outcomes):
        copy = ads(*sizes, seed=seed, **changes)
        copy.load_state_dict(state(schedule))
        drawn = schedule.next(count)
        assert copy.next(count) == drawn
        assert len({p.id for p in drawn}) == count
        for other in (schedule, copy):
            other.observe([answered(p, (right + i * draw) % 9) for i, p in enumerate(drawn)])
        assert state(copy) == state(schedule)
        assert sum(state(schedule)["probability"]) == pytest.approx(1)
        assert [len(window) for window in state(schedule)["windows"]] == [changes["window"]] * len(sizes)


def test_metrics_say_how_much_is_in_the_band_seen_and_reached():
    schedule = ads(10, 10, active=1)
    assert schedule.metrics() == {"coverage": 0.0, "in_band": 0.0, "reached": pytest.approx(0.4)}
    members = clusters(10)[0]
    schedule.observe(
        [answered(members[0], 4), answered(members[1], 4), answered(members[2], 4), answered(members[3], 8)]
    )
    assert schedule.metrics() == {"coverage": 0.2, "in_band": 0.75, "reached": pytest.approx(0.45)}


def test_clusters_of_a_single_prompt_are_reached_whole():
    assert ads(1, 1, window=1).metrics()["reached"] == 1.0


def test_a_window_over_all_data_in_one_cluster_is_full_batch_training():
    schedule = ads(4, window=4, active=1)
    for right in (0, 8, 4):
        drawn = schedule.next(4)
        assert [p.id for p in drawn] == ["000", "001", "002", "003"]
        schedule.observe([answered(p, right) for p in drawn])


def test_the_same_seed_draws_the_same_prompts_and_another_seed_does_not():
    def draws(seed: int) -> list[list[str]]:
        schedule = ads(seed=seed)
        return [[p.id for p in schedule.next(8)] for _ in range(6)]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)


def test_another_count_than_the_windows_hold_is_an_error():
    with pytest.raises(ValueError, match="2 x 4 prompts at a time, not 9"):
        ads().next(9)


@pytest.mark.parametrize(
    ("sizes", "problem"), [((10, 3), "too small: \\[1\\]"), ((10,), "needs 2 clusters .* there are 1")]
)
def test_data_that_cannot_fill_the_windows_is_bad_input(sizes, problem):
    with pytest.raises(InputError, match=problem) as caught:
        ads(*sizes)
    assert "schedule.window" in str(caught.value.how)


def test_a_success_rate_of_one_does_not_leave_too_few_clusters_to_draw():
    schedule = with_state(ads(min_prob=0.1, alpha=1.0), success=[1.0, 0.0, 0.0, 0.0])
    schedule.observe([])
    assert len(schedule.next(8)) == 8


# Uniform


def test_uniform_draws_every_prompt_once_an_epoch_in_another_order_each_time():
    schedule = Uniform(prompts(10), seed=0)
    epochs = [[p.id for _ in range(2) for p in schedule.next(5)] for _ in range(3)]
    assert all(sorted(epoch) == [p.id for p in prompts(10)] for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


def test_uniform_crosses_epochs_inside_a_draw_and_may_draw_more_than_there_is():
    schedule = Uniform(prompts(3), seed=0)
    drawn = [p.id for p in schedule.next(2)] + [p.id for p in schedule.next(7)]
    assert all(sorted(drawn[i : i + 3]) == ["p000", "p001", "p002"] for i in (0, 3, 6))


def test_uniform_counts_what_it_has_seen():
    schedule = Uniform(prompts(4), seed=0)
    schedule.observe([answered(prompt(2), 8), answered(prompt(2), 8)])
    assert schedule.metrics() == {"coverage": 0.25}


# What every schedule must do


def schedules() -> dict[str, Callable[[], Schedule]]:
    return {
        "uniform": lambda: Uniform(prompts(10), seed=3),
        "difficulty_pools": lambda: DifficultyPools(prompts(30), PoolsSchedule(kind="difficulty_pools"), seed=3),
        "ads": lambda: ads(reset_draws=3),
        "greso": lambda: Greso(prompts(30), GresoSchedule(kind="greso"), seed=3),
        "mopps": lambda: Mopps(prompts(30), MoppsSchedule(kind="mopps"), seed=3),
        "forecast": lambda: Forecast(prompts(30), ForecastSchedule(kind="forecast"), 8, seed=3),
    }


@pytest.mark.parametrize("name", list(SCHEDULES))
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_restored_schedule_goes_on_as_if_nothing_had_happened(name, steps):
    def go_on(schedule, count: int) -> list[list[str]]:
        drawn = []
        for step in range(count):
            batch = schedule.next(8)
            drawn.append([p.id for p in batch])
            schedule.observe([answered(p, (step + i) % 9) for i, p in enumerate(batch)])
        return drawn

    one, other = schedules()[name](), schedules()[name]()
    go_on(one, steps)
    other.load_state_dict(state(one))
    assert go_on(other, 5) == go_on(one, 5)
    assert (state(other), other.metrics()) == (state(one), one.metrics())


@pytest.mark.parametrize("name", list(SCHEDULES))
@pytest.mark.parametrize("change", [lambda s: s.popitem(), lambda s: s.update(extra=1), lambda s: s.clear()])
def test_a_state_with_a_missing_or_an_unknown_field_is_refused(name, change):
    schedule = schedules()[name]()
    wrong = state(schedule)
    change(wrong)
    with pytest.raises(ValueError, match="missing or unknown fields"):
        schedule.load_state_dict(wrong)


def test_a_state_of_other_clusters_is_refused():
    with pytest.raises(ValueError, match="other prompts"):
        ads().load_state_dict(ads(5, 5, 5).state_dict())
    same = [p for members in clusters(10, 10).values() for p in members]
    one, other = (Ads({0: same[:at], 1: same[at:]}, AdsSchedule(window=4, active=2), 0) for at in (10, 12))
    with pytest.raises(ValueError, match=r"\[10, 10\] prompts, the data has \[12, 8\]"):
        other.load_state_dict(one.state_dict())


@pytest.mark.parametrize("windows", [[[0, 1, 2, 10]] * 4, [[0, 0, 1, 2]] * 4, [[-1, 0, 1, 2]] * 4, [[0, 1, 2]] * 4])
def test_windows_that_no_cluster_can_have_are_refused(windows):
    with pytest.raises(ValueError, match=r"windows is .* not"):
        with_state(ads(), windows=windows)


IMPOSSIBLE = {
    "uniform": {"drawn": [-3, 2.7, "5", True, None], "seen": ["!", 5]},
    "difficulty_pools": {
        "draws": [-5, 99.5, "1", True],
        "in_band": ["0.5", -0.1, float("nan"), True],
        "closed": [7, float("inf")],
        "measured": [[0], "AAA="],
    },
    "ads": {
        "draws": [-5, 1.9, "1"],
        "in_band": [float("nan"), 1.1, None],
        "success": [[7.0] * 4, ["x"] * 4, [0.5] * 3, [float("nan")] * 4, 0.5],
        "probability": [
            [3.0] * 4,
            [-1.0, 1.0, 0.5, 0.5],
            [0.5, 0.5, 0.0, 0.0],
            [0.2] * 5,
            [float("nan")] * 4,
            ["x"] * 4,
        ],
        "windows": [5, [[0, 1, 2, 3.0]] * 4, [[False, 1, 2, 3]] * 4, [[0, 1, 2, 3]] * 3, [5] * 4],
    },
    "greso": {"skipped": [-1], "explore_easy": [2.0, "x"], "streak_places": ["AAA=", 5], "streaks": ["AQAAAA=="]},
    "mopps": {"draws": [-5], "beta_a": ["AAA=", "AAAAAAAA8D8="]},
    "forecast": {"draws": [-5], "error": [2.0], "model_places": ["AAAAAA=="], "model_kinds": ["AAAAAAAA8D8="]},
}


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        (name, field, value)
        for name, fields in IMPOSSIBLE.items()
        for field, values in fields.items()
        for value in values
    ],
)
def test_a_field_that_cannot_be_is_refused_by_its_name(name, field, value):
    schedule = schedules()[name]()
    with pytest.raises(ValueError, match=f"state does not fit: .*{field}"):
        schedule.load_state_dict({**state(schedule), field: value})


def test_a_probability_may_be_above_one_by_rounding():
    assert state(with_state(ads(4, active=1), probability=[1 + 1e-15]))["probability"] == [1 + 1e-15]


@pytest.mark.parametrize("name", list(SCHEDULES))
def test_the_settings_build_every_schedule_over_all_prompts(name):
    kinds = {
        "uniform": {"kind": "uniform"},
        "difficulty_pools": {"kind": "difficulty_pools"},
        "ads": {"kind": "ads", "window": 2, "active": 2},
    }.get(name, {"kind": name})
    schedule = build_schedule(clusters(5, 5), settings(schedule=kinds))
    assert sorted(p.id for p in schedule.prompts) == sorted(p.id for row in clusters(5, 5).values() for p in row)
    assert len(schedule.next(4)) == 4


def test_the_order_of_the_clusters_does_not_change_uniform():
    forward, backward = clusters(5, 5), dict(reversed(clusters(5, 5).items()))
    uniform = settings(schedule={"kind": "uniform"})
    assert build_schedule(forward, uniform).next(4) == build_schedule(backward, uniform).next(4)
