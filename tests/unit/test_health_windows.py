"""What the functions of health rules are worth, against a plain recomputation from the full history."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from components.config.judgement import RuleSettings
from components.health.monitor import Monitor
from components.health.windows import History, measure
from components.types import StepRecord

Value = float | None
VALUES = st.one_of(st.none(), st.just(math.nan), st.just(math.inf), st.integers(-40, 40).map(lambda n: n / 8))
SERIES = st.lists(VALUES, min_size=1, max_size=40)
"""None is a step without the signal."""


def records(values: Sequence[Value], steps: Sequence[int] | None = None) -> list[StepRecord]:
    numbers = range(len(values)) if steps is None else steps
    return [StepRecord(s, {} if v is None else {"reward": v}) for s, v in zip(numbers, values, strict=True)]


def worth(call: str, values: Sequence[Value], steps: Sequence[int] | None = None) -> list[Value]:
    """The value of a function call after every step, as the monitor has it; None where it does not exist."""
    monitor = Monitor({"rule": RuleSettings(when=f"{call} > 1e9", why="w")})
    (reading,) = monitor._rules[0].when.readings.values()
    found = []
    for record in records(values, steps):
        monitor.observe(record)
        found.append(monitor._value(reading))
    return found


def finite(values: Sequence[Value], steps: Sequence[int]) -> list[tuple[int, float]]:
    return [(s, v) for s, v in zip(steps, values, strict=True) if v is not None and math.isfinite(v)]


def slope(points: Sequence[tuple[int, float]]) -> Value:
    if len(points) < 2:
        return None
    x, y = np.array(points, dtype=float).T
    return float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())


PLAIN = {
    "last": lambda points: points[-1][1],
    "first": lambda points: points[0][1],
    "mean": lambda points: fmean(v for _, v in points),
    "min": lambda points: min(v for _, v in points),
    "max": lambda points: max(v for _, v in points),
    "slope": slope,
    "std": lambda points: stdev(v for _, v in points) if len(points) > 1 else None,
    "quantile": lambda points: float(np.quantile([v for _, v in points], 0.25)),
}


def same(found: Value, expected: Value) -> bool:
    if found is None or expected is None:
        return found is expected
    return found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("function", ["last", "first", "mean", "min", "max", "slope"])
@given(values=SERIES)
def test_over_a_whole_run_a_function_equals_its_recomputation_from_everything(function, values):
    for n, found in enumerate(worth(f"{function}(reward)", values), start=1):
        points = finite(values[:n], range(n))
        assert same(found, PLAIN[function](points) if points else None)


@pytest.mark.parametrize("function", list(PLAIN))
@given(values=SERIES, count=st.integers(1, 12), gaps=st.lists(st.integers(1, 5), min_size=40, max_size=40))
@example(values=[1.0, None, 3.0, math.nan, 5.0], count=3, gaps=[1] * 40)
def test_over_a_window_a_function_equals_its_recomputation_from_the_last_steps_observed(function, values, count, gaps):
    steps = list(np.cumsum(gaps[: len(values)]) - 1)  # numbers with gaps, as after a roll-back
    share = ", 0.25" if function == "quantile" else ""
    for n, found in enumerate(worth(f"{function}(reward{share}, {count})", values, steps), start=1):
        points = finite(values[:n], steps[:n])[-count:] if n >= count else []
        points = [(s, v) for s, v in points if s >= steps[n - count]] if points else []
        assert same(found, PLAIN[function](points) if points else None)


@given(values=SERIES, count=st.integers(1, 12))
def test_share_is_that_of_the_judgeable_steps_in_the_window_on_which_the_condition_held(values, count):
    for n, found in enumerate(worth(f"share(reward < 0, {count})", values), start=1):
        window = finite(values[:n], range(n)) if n >= count else []
        held = [v < 0 for s, v in window if s >= n - count]
        assert same(found, fmean(held) if held else None)


@given(values=SERIES, count=st.integers(1, 6))
def test_without_an_acting_rule_every_step_is_healthy_and_baselines_are_of_the_first_ones(values, count):
    opening = [v for _, v in finite(values[:count], range(min(count, len(values))))]
    for function, expected in (
        ("baseline", fmean(opening) if opening else None),
        ("baseline_std", stdev(opening) if len(opening) > 1 else None),
    ):
        found = worth(f"{function}(reward, {count})", values)
        assert found[: count - 1] == [None] * min(count - 1, len(values))
        assert all(same(one, expected) for one in found[count - 1 :])


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("std(reward, 5)", math.sqrt(9.5)),
        ("std(reward, 2)", math.sqrt(4.5)),
        ("quantile(reward, 0.5, 5)", 6.0),
        ("quantile(reward, 0, 3)", 6.0),
        ("quantile(reward, 1, 5)", 9.0),
        ("quantile(reward, 0.25, 5)", 3.0),
        ("quantile(reward, 0.1, 5)", 1.8),
        ("share(reward > 2, 5)", 0.8),
        ("share(reward > mean(reward, 2), 4)", 3 / 4),
        ("share(reward > 2 and not reward > 8, 4)", 3 / 4),
        ("baseline(reward, 3)", 10 / 3),
        ("baseline_std(reward, 3)", math.sqrt(19 / 3)),
        ("slope(reward, 3)", 0.0),
        ("slope(reward)", 1.6),
    ],
)
def test_worked_numbers(call, value):
    assert worth(call, [1.0, 3.0, 6.0, 9.0, 6.0])[-1] == pytest.approx(value)


@pytest.mark.parametrize("call", ["std(reward, 3)", "slope(reward, 3)", "slope(reward)", "baseline_std(reward, 1)"])
def test_of_one_value_there_is_neither_a_deviation_nor_a_slope(call):
    assert worth(call, [None, None, 1.0, None])[2:] == [None, None]


def test_a_share_of_a_share_looks_at_the_inner_windows_as_they_were():
    values = [-1.0, 1.0, -1.0, -1.0, 1.0, 1.0]
    low = [None, 0.5, 0.5, 1.0, 0.5, 0.0]  # share(reward < 0, 2)
    found = worth("share(share(reward < 0, 2) >= 0.5, 3)", values)
    assert found == [None, None, *(fmean(x >= 0.5 for x in low[n - 2 : n + 1] if x is not None) for n in range(2, 6))]


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.25, None, math.nan, 0.75]])
def test_what_is_remembered_does_not_grow_with_the_run(values):
    calls = ("slope(reward)", "mean(reward, 7)", "baseline(reward, 50)", "share(reward < 0.5, 30)", "std(entropy, 9)")
    monitor = Monitor({f"r{i}": RuleSettings(when=f"{call} > 9", why="w") for i, call in enumerate(calls)})
    sizes = []
    for step in range(10_000):
        value = values[step % len(values)]
        monitor.observe(StepRecord(step, {"entropy": 1.0, **({} if value is None else {"reward": value})}))
        if step in (999, 9_999):
            sizes.append(numbers(json.loads(json.dumps(monitor.state_dict()))))
    assert sizes[0] == sizes[1] < 500


def numbers(state) -> int:
    """How many scalars a state holds."""
    if isinstance(state, dict):
        return sum(map(numbers, state.values()))
    return sum(map(numbers, state)) if isinstance(state, list) else 1


def test_a_baseline_takes_its_own_number_of_steps_where_another_rule_takes_more() -> None:
    history = History(4, 4)
    for step, value in enumerate((1.0, 1.0, 7.0, 7.0)):
        history.add(step, step, value)
        history.freeze(step)
    found = [measure("baseline", history, count=count, seen=4, healthy=4) for count in (2, 3, 4)]
    assert found == [1.0, 3.0, 4.0]
