"""When a rule fires, when it is silent, and what it remembers."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.judgement import RuleSettings
from components.health.monitor import Monitor, replay, standing, unjudged
from components.types import StepRecord, Verdict

ACT = {"level": "stop"}


def rules(**settings: Any) -> dict[str, RuleSettings]:
    return {"rule": RuleSettings.model_validate({"why": "because", **settings})}


def series(**columns: Sequence[float | None]) -> list[StepRecord]:
    """Records from columns; None is a step in which the signal does not exist."""
    rows = zip(*columns.values(), strict=True)
    return [
        StepRecord(step, {name: v for name, v in zip(columns, row, strict=True) if v is not None})
        for step, row in enumerate(rows)
    ]


def fired(records: Sequence[StepRecord], **settings: Any) -> list[int]:
    return [verdict.step for verdict in replay(rules(**settings), records)]


@pytest.mark.parametrize(
    ("low", "how", "stands"),
    [
        ([5], {"level": "stop", "streak": 3}, False),  # one step into its streak
        ([3, 4, 5], {"level": "stop", "streak": 3}, True),
        ([3, 4, 5], {"level": "warn", "streak": 3}, False),
        ([2, 3, 4], {"level": "stop", "streak": 3}, False),  # it has recovered
    ],
)
def test_what_stands_at_the_end_is_an_acting_rule_that_has_held_for_its_streak(low, how, stands) -> None:
    records = series(entropy=[0.1 if step in low else 1.0 for step in range(6)])
    assert standing(rules(when="entropy < 0.5", **how), records) == (["rule"] if stands else [])


def observed(records: Sequence[StepRecord], **settings: Any) -> Monitor:
    monitor = Monitor(rules(**settings))
    for record in records:
        monitor.observe(record)
    return monitor


# Streaks


@pytest.mark.parametrize(("steps", "expected"), [(49, []), (50, [49]), (51, [49]), (200, [49])])
def test_a_streak_of_fifty_is_silent_at_49_and_speaks_once_at_50(steps, expected):
    assert fired(series(entropy=[0.4] * steps), when="entropy < 0.5", streak=50) == expected


@pytest.mark.parametrize("dip", [0, 25, 48])
def test_one_step_on_which_it_does_not_hold_starts_the_count_again(dip):
    entropy = [0.4] * 99
    entropy[dip] = 0.6
    assert fired(series(entropy=entropy), when="entropy < 0.5", streak=50) == [dip + 50]


@pytest.mark.parametrize("gap", [1, 10, 60])
def test_steps_without_the_signal_neither_count_nor_start_the_count_again(gap):
    entropy = [0.4] * 25 + [None] * gap + [0.4] * 25
    assert fired(series(entropy=entropy), when="entropy < 0.5", streak=50) == [49 + gap]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_counts_like_one_that_breaches(bad):
    entropy = [0.4] * 20 + [bad] * 10 + [0.4] * 20
    assert fired(series(entropy=entropy), when="entropy < 0.5", streak=50) == [49]
    assert fired(series(entropy=[bad] * 50), when="entropy > 9", streak=50) == [49]


def test_in_a_window_only_the_step_of_a_value_that_is_no_number_breaches_by_it():
    entropy = [1.0, 1.0, math.nan, 1.0, 1.0]
    assert fired(series(entropy=entropy), when="mean(entropy, 3) < 0.5") == [2]


# The exception


@pytest.mark.parametrize(
    ("kl", "expected"),
    [
        ([0.0, 0.0, 0.0], [0]),  # judged, and does not hold
        ([0.5, 0.5, 0.5], []),  # judged, and holds
        ([0.5, 0.0, 0.5], [1]),
        ([None, None, None], [0]),  # not judgeable: there is no exception
        ([math.nan, math.nan, 0.5], [0]),  # no number: there is no exception, and no breach by it either
    ],
)
def test_a_rule_does_not_hold_where_its_exception_does(kl, expected):
    records = series(entropy=[0.4, 0.4, 0.4], kl_ref=kl)
    assert fired(records, when="entropy < 0.5", unless="kl_ref > 0.1") == expected


def test_a_number_that_is_none_in_the_exception_alone_is_no_breach():
    assert fired(series(entropy=[0.9], kl_ref=[math.nan]), when="entropy < 0.5", unless="kl_ref > 0.1") == []


def test_an_exception_resets_the_streak():
    records = series(entropy=[0.4] * 6, kl_ref=[0.0, 0.0, 0.5, 0.0, 0.0, 0.0])
    assert fired(records, when="entropy < 0.5", unless="kl_ref > 0.1", streak=3) == [5]


def test_a_value_that_is_no_number_breaches_whatever_the_exception_says():
    assert fired(series(entropy=[math.nan], kl_ref=[0.5]), when="entropy < 0.5", unless="kl_ref > 0.1") == [0]


def test_the_reason_names_the_exception():
    (verdict,) = replay(rules(when="entropy < 0.5", unless="kl_ref > 0.1"), series(entropy=[0.4]))
    assert verdict.reason == "because [entropy < 0.5, unless kl_ref > 0.1]"


# The cool-down


@pytest.mark.parametrize(
    ("entropy", "streak", "cooldown", "expected"),
    [
        ([0.4] * 12, 1, 0, [0]),
        ([0.4] * 12, 1, 1, list(range(12))),
        ([0.4] * 12, 1, 5, [0, 5, 10]),
        ([0.4] * 12, 3, 5, [2, 7]),
        ([0.4, 0.6] * 6, 1, 0, [0, 2, 4, 6, 8, 10]),
        ([0.4, 0.6] * 6, 1, 5, [0, 6]),  # 5 is silent because it does not hold then
        ([0.4] * 3 + [0.6] + [0.4] * 8, 3, 9, [2, 11]),  # a new streak waits for the cool-down of the last
        ([0.4] + [0.6] * 9 + [0.4], 1, 5, [0, 10]),
    ],
)
def test_a_rule_that_still_holds_speaks_again_after_its_cooldown_and_never_within_it(
    entropy, streak, cooldown, expected
):
    assert fired(series(entropy=entropy), when="entropy < 0.5", streak=streak, cooldown=cooldown) == expected


@given(
    st.lists(st.sampled_from([0.4, 0.6, math.nan, None]), min_size=1, max_size=60), st.integers(1, 6), st.integers(1, 9)
)
def test_two_words_of_one_rule_are_never_nearer_than_its_cooldown(entropy, streak, cooldown):
    said = fired(series(entropy=entropy), when="entropy < 0.5", streak=streak, cooldown=cooldown)
    assert all(later - earlier >= cooldown for earlier, later in itertools.pairwise(said))


# Baselines


def test_a_baseline_is_made_of_the_first_steps_on_which_no_acting_rule_held_and_is_frozen_then():
    entropy = [9.0, 9.0, 1.0, 2.0, 3.0, 50.0, 50.0]
    both = {
        **rules(when="entropy > 5", level="stop"),
        "above": RuleSettings(when="entropy > 20 * baseline(entropy, 3)", why="w"),
    }
    assert [(v.rule, v.step) for v in replay(both, series(entropy=entropy))] == [("rule", 0), ("rule", 5), ("above", 5)]


def test_a_rule_that_only_warns_makes_no_step_unhealthy():
    both = {
        **rules(when="entropy > 5", level="warn"),
        "above": RuleSettings(when="entropy > 5 * baseline(entropy, 2)", why="w"),
    }
    assert [v.rule for v in replay(both, series(entropy=[9.0, 9.0, 40.0]))] == ["rule"]


def test_a_breach_shorter_than_its_streak_makes_a_step_unhealthy_all_the_same():
    both = {
        **rules(when="entropy > 5", level="stop", streak=99),
        "above": RuleSettings(when="entropy > 3 * baseline(entropy, 1)", why="w"),
    }
    assert [v.step for v in replay(both, series(entropy=[9.0, 1.0, 2.0, 4.0]))] == [3]


# Since when


def clean(records: Sequence[StepRecord], **settings: Any) -> int:
    (verdict,) = replay(rules(**settings), records)
    return verdict.clean


@pytest.mark.parametrize(
    ("when", "streak", "expected"),
    [
        ("entropy < 0.5", 1, 29),
        ("entropy < 0.5", 5, 29),  # the streak began at 30
        ("mean(entropy, 10) < 0.5", 1, 28),  # at 38, over 29 to 38
        ("share(entropy < 0.5, 10) > 0.35", 1, 23),  # at 33, over 24 to 33
        ("entropy < 0.5 * baseline(entropy, 5)", 1, 29),  # a baseline is no evidence
        ("quantile(entropy, 0.5, 4) < 0.6 and std(entropy, 8) > 0", 1, 24),  # at 32, the longer window counts
    ],
)
def test_clean_is_the_last_step_before_the_evidence_begins(when, streak, expected):
    records = series(entropy=[1.0] * 30 + [0.4] * 10)
    assert clean(records, when=when, streak=streak) == expected


def test_evidence_of_a_signal_that_is_measured_now_and_then_begins_after_its_last_measurement_but_one():
    dev = [0.8 if step == 0 else 0.5 if step == 10 else 0.2 if step == 20 else None for step in range(21)]
    assert clean(series(dev_pass_at_1=dev), when="dev_pass_at_1 < 0.4") == 10
    assert clean(series(dev_pass_at_1=dev), when="last(dev_pass_at_1) < 0.5 * max(dev_pass_at_1)") == 10


def test_a_window_as_long_as_the_run_leaves_nothing_clean():
    assert clean(series(entropy=[0.4] * 5), when="mean(entropy, 5) < 0.5") == -1
    assert clean(series(entropy=[0.4]), when="entropy < 0.5") == -1


def test_after_a_roll_back_evidence_begins_in_the_steps_that_count_and_not_in_those_that_were_undone():
    monitor = observed(series(entropy=[1.0] * 10), when="mean(entropy, 4) < 0.9")
    assert [monitor.observe(StepRecord(step, {"entropy": 0.9})) for step in (30, 31)] == [[], []]
    (verdict,) = monitor.observe(StepRecord(32, {"entropy": 0.1}))
    assert verdict.clean == 8  # the window is 9, 30, 31, 32


# State


@given(
    st.lists(st.tuples(st.sampled_from([0.3, 0.6, 0.9, math.nan, None]), st.integers(1, 4)), max_size=40),
    st.integers(0, 40),
)
def test_a_resumed_monitor_says_what_an_uninterrupted_one_says_with_all_that_rules_can_do(points, cut):
    texts = {
        "rest": {"when": "entropy < 0.5", "cooldown": 4, "streak": 2, **ACT},
        "except": {"when": "mean(entropy, 5) < 0.8", "unless": "share(entropy > 0.8, 3) > 0.4"},
        "base": {"when": "entropy < baseline(entropy, 3) - baseline_std(entropy, 3)"},
        "slopes": {"when": "slope(entropy, 6) < 0 and slope(entropy) < 0.1", "streak": 3},
        "quantile": {"when": "quantile(entropy, 0.1, 7) < 0.5 and std(entropy, 4) > 0.1"},
    }
    several = {name: RuleSettings.model_validate({"why": "w", **text}) for name, text in texts.items()}
    step, records = -1, []
    for value, gap in points:
        step += gap
        records.append(StepRecord(step, {} if value is None else {"entropy": value}))
    first, second = Monitor(several), Monitor(several)
    before = [v for record in records[:cut] for v in first.observe(record)]
    second.load_state_dict(json.loads(json.dumps(first.state_dict(), allow_nan=False)))
    after = [v for record in records[cut:] for v in second.observe(record)]
    assert before + after == replay(several, records)
    for record in records[cut:]:
        first.observe(record)
    assert second.state_dict() == first.state_dict()


@pytest.mark.parametrize("key", ["step", "steps", "seen", "healthy", "histories", "streaks"])
def test_a_state_without_one_of_its_fields_is_refused(key):
    state = observed(series(entropy=[1.0] * 3), when="entropy < 0.5").state_dict()
    with pytest.raises(ValueError, match="monitor state has"):
        observed([], when="entropy < 0.5").load_state_dict({name: state[name] for name in state if name != key})


@pytest.mark.parametrize(
    "damage", [{"surplus": 1}, {"streaks": {}}, {"streaks": {"rule": 0, "other": 0}}, {"histories": {"reward": []}}]
)
def test_a_state_of_other_rules_is_refused(damage):
    monitor = observed([], when="entropy < 0.5")
    with pytest.raises(ValueError, match="monitor state has"):
        monitor.load_state_dict({**monitor.state_dict(), **damage})


def test_at_ease_is_when_no_acting_rule_holds_not_even_for_less_than_its_streak():
    assert not observed(series(entropy=[1.0, 0.4]), when="entropy < 0.5", streak=9, **ACT).healthy
    assert observed(series(entropy=[1.0, 0.4]), when="entropy < 0.5", streak=9).healthy
    assert observed(series(entropy=[0.4, 1.0]), when="entropy < 0.5", **ACT).healthy


def test_latest_is_the_last_value_of_every_signal_that_a_rule_reads():
    monitor = observed(
        series(entropy=[1.0, 0.5], reward=[0.25, None], kl_ref=[None, None]),
        when="entropy < 0 and share(reward < 0, 2) > 0 and kl_ref < 0",
    )
    assert monitor.latest("rule") == {"entropy": 0.5, "reward": 0.25}


# Replay


def logged(values: Mapping[int, tuple[float, int | None]]) -> list[StepRecord]:
    """Step -> entropy and, where the run went back after it, to which checkpoint."""
    return [
        StepRecord(step, {"entropy": value}, {} if back is None else {"rolled_back_to": back})
        for step, (value, back) in values.items()
    ]


def live(records: Sequence[StepRecord], several: Mapping[str, RuleSettings]) -> list[Verdict]:
    """What a run says that saves its monitor before every step and goes back to what it has saved."""
    monitor, saved, verdicts = Monitor(several), {}, []
    for record in records:
        saved[record.step] = json.loads(json.dumps(monitor.state_dict()))
        verdicts += monitor.observe(record)
        if "rolled_back_to" in record.notes:
            monitor.go_back(saved[record.notes["rolled_back_to"]])
    return verdicts


def test_a_replay_goes_back_where_the_run_went_back():
    records = logged({0: (1.0, None), 1: (1.0, None), 2: (0.4, None), 3: (0.4, 2), 4: (0.4, None), 5: (0.4, None)})
    assert [v.step for v in replay(rules(when="entropy < 0.5", streak=2), records)] == [3, 5]
    assert [v.step for v in replay(rules(when="mean(entropy, 3) < 0.7"), records)] == [3, 5]


def test_a_replay_keeps_when_a_rule_fired_before_the_first_of_two_roll_backs():
    values = {0: (0.4, None), 1: (0.9, 0), **{step: (0.9, None) for step in range(2, 26)}}
    values |= {26: (0.4, None), 27: (0.4, None), 28: (0.4, 27), 29: (0.9, None), 30: (0.86, None)}
    several = {
        **rules(when="entropy < 0.5", cooldown=50, level="stop"),
        "start": RuleSettings(when="entropy < 0.97 * baseline(entropy, 25)", why="w"),
    }
    assert replay(several, logged(values)) == live(logged(values), several)


@given(st.lists(st.tuples(st.sampled_from([0.3, 0.6, 0.9]), st.integers(0, 12)), min_size=1, max_size=30))
def test_a_replay_says_what_the_run_said_whatever_it_went_back_to(points):
    several = {
        **rules(when="entropy < 0.5", streak=2, cooldown=3, level="stop"),
        "window": RuleSettings(when="mean(entropy, 4) < 1.1 * baseline(entropy, 3)", why="w"),
    }
    records, alive = [], [0]
    for step, (value, where) in enumerate(points):
        back = alive[where] if where < len(alive) - 1 else None
        records.append(StepRecord(step, {"entropy": value}, {} if back is None else {"rolled_back_to": back}))
        if back is not None:
            alive = [one for one in alive if one <= back]
        alive.append(step + 1)
    assert replay(several, records) == live(records, several)


def test_rules_whose_signals_never_occur_are_named_with_them():
    several = {
        **rules(when="entropy < 0.5 and share(kl_ref > 1, 3) > 0.5"),
        "fine": RuleSettings(when="entropy < 0", unless="reward > 0", why="w"),
    }
    assert unjudged(several, series(entropy=[1.0])) == {"rule": ["kl_ref"]}
