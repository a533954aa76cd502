"""Limits read from rules, and what roll-backs threw away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.judgement import RuleSettings
from components.health.limits import limits
from components.health.records import discarded, undone
from components.types import Response


def limits_of(when):
    found = limits({"r": RuleSettings(when=when, why="why")})
    return [(one.signal, ">" if one.above else "<", one.value, one.alone) for one in found]


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("entropy < 0.5", [("entropy", "<", 0.5, True)]),
        ("0.5 > entropy", [("entropy", "<", 0.5, True)]),
        ("not entropy >= 0.5", [("entropy", "<", 0.5, True)]),
        ("reward < -1", [("reward", "<", -1.0, True)]),
        ("mean(second_disagreement, 20) > 0.1", [("second_disagreement", ">", 0.1, True)]),
        ("mismatch_k3 > 0.001 or ess < 0.5", [("mismatch_k3", ">", 0.001, True), ("ess", "<", 0.5, True)]),
        ("entropy < 0.5 and last(reward) < 0.9", [("entropy", "<", 0.5, False), ("reward", "<", 0.9, False)]),
        ("not (entropy < 0.5 or ess > 0.2)", [("entropy", ">", 0.5, False), ("ess", "<", 0.2, False)]),
        ("not (entropy < 0.5 and ess > 0.2)", [("entropy", ">", 0.5, True), ("ess", "<", 0.2, True)]),
        ("0.1 < ess < 0.5", [("ess", ">", 0.1, False), ("ess", "<", 0.5, False)]),
        ("max(accuracy) > 0.1 and accuracy < 0.1 * max(accuracy)", []),
        ("slope(reward, 50) <= 0", []),
        ("std(entropy, 20) < 0.01", []),
        ("share(entropy < 0.5, 20) > 0.8", [("entropy", "<", 0.5, False)]),
        ("share(entropy < 0.5, 20) < 0.2", [("entropy", ">", 0.5, False)]),
        ("quantile(ess, 0.1, 20) < 0.3", [("ess", "<", 0.3, True)]),
        ("step <= 150 and entropy < 0.5 * baseline(entropy, 5)", []),
        ("all_wrong_share > 0.9 and all_wrong_share >= all_right_share", [("all_wrong_share", ">", 0.9, False)]),
    ],
)  # fmt: skip
def test_a_limit_is_a_constant_beyond_which_a_rule_speaks_alone_or_together_with_more(when, expected):
    assert limits_of(when) == expected


def test_a_limit_with_an_exception_is_not_alone():
    rule = RuleSettings(when="entropy < 0.5", unless="last(dev_pass_at_1) > 0.9", why="why")
    assert [limit.alone for limit in limits({"r": rule})] == [False]


def back(number, step, to):
    return Response(number, step, "r", "rollback", "rollback", "why", {}, (), to, ())


@pytest.mark.parametrize(
    ("steps", "responses", "gone"),
    [
        (60, [], []),
        (60, [back(1, 31, 16)], [(16, 31)]),
        (60, [back(1, 31, 16), back(2, 40, 35)], [(16, 31), (35, 40)]),
        (60, [back(1, 31, 16), back(2, 40, 10)], [(16, 31), (10, 15), (32, 40)]),
        (60, [back(1, 31, 16), back(2, 40, 20)], [(16, 31), (32, 40)]),
        (60, [back(1, 31, 0)], [(0, 31)]),
        (60, [back(1, 31, 32)], []),
    ],
)
def test_a_roll_back_throws_away_what_was_done_after_the_step_it_went_back_to(steps, responses, gone):
    assert [(part.first, part.last) for part in discarded(range(steps), responses)] == gone


@given(st.lists(st.tuples(st.integers(0, 59), st.integers(0, 60)), max_size=5))
def test_no_step_is_thrown_away_twice(events):
    responses = [back(number, step, to) for number, (step, to) in enumerate(sorted(events))]
    gone = [step for part in discarded(range(60), responses) for step in range(part.first, part.last + 1)]
    assert len(gone) == len(set(gone))
    assert sum(part.steps for part in discarded(range(60), responses)) == len(gone)
    assert undone(range(60), responses) == set(gone)
