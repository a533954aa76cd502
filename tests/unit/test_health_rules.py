"""The language of health rules, and when a rule fires."""

import math
import re

import pytest
from pydantic import ValidationError
from test_health_monitor import fired, observed, rules, series

from components.config.judgement import RuleSettings
from components.errors import InputError
from components.health.monitor import Monitor, replay, worst
from components.health.rulebook import check_rules
from components.types import StepRecord, Verdict


def test_a_value_that_is_not_finite_is_null_in_the_evidence_and_ignored_by_windows() -> None:
    records = series(entropy=[0.2, math.nan, 0.4])
    (verdict,) = replay(rules(when="mean(entropy, 3) > 0.29 and entropy < 0.5"), records[:2])
    assert verdict.evidence == {"entropy": [0.2, None]}
    assert fired(records, when="mean(entropy, 3) < 0.31") == [1]


def test_an_or_needs_both_sides_to_exist_whatever_their_order() -> None:
    records = series(entropy=[0.1])
    for when in ("entropy < 0.5 or kl_ref > 0.1", "kl_ref > 0.1 or entropy < 0.5"):
        assert fired(records, when=when) == []


def test_step_can_be_compared() -> None:
    assert fired(series(entropy=[0.5] * 4), when="step >= 2 and entropy < 1") == [2]


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ("entrpy < 0.5", "did you mean entropy"),
        ("mean(entrpy, 3) < 1", "entrpy"),
        ("median(entropy) < 1", "unknown function 'median'"),
        ("entropy.real < 1", "Attribute"),
        ("entropy / 2 < 1", "instead of dividing"),
        ("entropy ** 2 < 1", "Pow"),
        ("entropy", "not a condition"),
        ("entropy and reward > 1", "not a condition"),
        ("step > 3", "reads no signal"),
        ("mean(entropy, 0) < 1", "number of steps"),
        ("mean(entropy, reward) < 1", "number of steps"),
        ("mean(entropy, 2.5) < 1", "number of steps"),
        ("mean() < 1", "takes a signal"),
        ("mean(entropy, n=3) < 1", "takes a signal"),
        ("mean(0.5, 3) < 1", "unknown signal '0.5'"),
        ("baseline(entropy) < 1", "needs a number of steps"),
        ("entropy <", "cannot be read"),
        ("entropy < 1; reward < 1", "cannot be read"),
        ("entropy < '1'", "not a number"),
        ("entropy < True", "not a number"),
        ("__import__('os').system('true') < 1", "unknown function"),
        ("(lambda: 0)() < 1", "unknown function"),
        ("[entropy for _ in ()] < 1", "ListComp"),
        ("entropy < 1\x00", "cannot be read"),
        ("share(entropy, 5) > 0.5", "share needs a condition"),
        ("share(entropy < 1) > 0.5", "share needs a number of steps"),
        ("share(entropy < 1 and reward, 5) > 0.5", "share needs a condition"),
        ("share(entrpy < 1, 5) > 0.5", "did you mean entropy"),
        ("share(1 < 2, 5) > 0.5", "reads no signal"),
        ("quantile(entropy, 5) < 1", "quantile takes a signal, a share and a number of steps"),
        ("quantile(entropy, 0.5) < 1", "quantile needs a number of steps"),
        ("quantile(entropy, 1.5, 5) < 1", "quantile takes a signal, a share"),
        ("quantile(entropy, reward, 5) < 1", "quantile takes a signal, a share"),
        ("std(entropy) < 1", "std needs a number of steps"),
        ("baseline_std(entropy) < 1", "baseline_std needs a number of steps"),
        ("mean(entropy, 2, 3) < 1", "takes a signal"),
        ("entropy < 1e999", "not below 1e+150"),
        ("entropy < -1e150", "not below 1e+150"),
        (f"entropy < {10**400}", "not below 1e+150"),
        (f"entropy < {'+'.join(['1'] * 200)}", "nested more than 100 levels"),
        (f"{'not ' * 150}entropy < 1", "nested more than 100 levels"),
        (f"entropy < {'-' * 2000}1", "nested"),
        (f"share(entropy < {'-' * 150}1, 5) > 0.5", "nested more than 100 levels"),
    ],
)
def test_a_malformed_rule_is_refused_before_the_run_naming_rule_and_expression(when: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        Monitor(rules(when=when))
    text = str(caught.value)
    assert problem in text
    assert "'rule'" in text
    assert when in str(caught.value.where)


@pytest.mark.parametrize(
    "when",
    [
        f"{'*'.join(['step'] * 80)} * entropy < 1",
        f"{'*'.join(['entropy'] * 80)} < 1",
        f"{'*'.join([str(10**149)] * 9)} * entropy < 1",
        f"{'*'.join(['9e149'] * 9)} - {'*'.join(['9e149'] * 9)} < entropy",
        f"{'not ' * 90}entropy < 1",
        f"entropy < {'+'.join(['entropy'] * 90)}",
    ],
)
def test_a_rule_that_loads_never_fails_whatever_the_numbers(when: str) -> None:
    monitor = Monitor(rules(when=when))
    for step, value in enumerate((0.0, -1e149, 1e149, 2.0**52)):
        monitor.observe(StepRecord(2**53 - 9 + step, {"entropy": value}))


@pytest.mark.parametrize("unless", ["entrpy < 1", "entropy", "step > 3", "median(entropy) < 1", "entropy <"])
def test_a_malformed_exception_is_refused_as_one(unless: str) -> None:
    with pytest.raises(InputError, match=f"(?s)'rule'.*unless: {re.escape(unless)}"):
        Monitor({"rule": RuleSettings(when="entropy < 1", unless=unless, why="w")})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"level": "intervene"}, "level intervene needs an action"),
        ({"level": "warn", "action": [{"knob": "learner.lr", "times": 0.5}]}, "changes nothing, so it takes no action"),
        ({"level": "stop", "action": [{"knob": "learner.lr", "times": 0.5}]}, "changes nothing, so it takes no action"),
        ({"level": "rollback", "action": [{"knob": "learner.lr", "times": 0.5, "to": 1}]}, "`times` or `to`, not both"),
        ({"level": "rollback", "action": [{"knob": "learner.lr", "times": 0}]}, "greater than 0"),
        ({"level": "rollback", "action": [{"knob": "learner.lr", "by": 2}]}, "Extra inputs"),
        ({"streak": 0}, "greater than or equal to 1"),
        ({"cooldown": -1}, "greater than or equal to 0"),
        ({"level": "panic"}, "'warn', 'intervene', 'rollback' or 'stop'"),
        ({"when": ""}, "at least 1 character"),
    ],
)
def test_settings_of_a_rule_that_make_no_sense_are_refused(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        RuleSettings.model_validate({"when": "entropy < 1", "why": "w", **settings})


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        ({"knob": "learner.lrr", "times": 0.5}, "did you mean learner.lr"),
        ({"knob": "seed", "to": 1}, "use one of"),
        ({"knob": "learner.lr"}, "add `times` or `to`"),
    ],
)
def test_an_impossible_action_is_refused_before_the_run(action: dict[str, object], problem: str) -> None:
    rule = {"when": "entropy < 1", "why": "w", "level": "rollback", "action": [action]}
    with pytest.raises(InputError, match=f"(?s)action of health rule 'rule'.*{problem}"):
        check_rules({"rule": RuleSettings.model_validate(rule)})


def test_a_verdict_says_why_and_shows_the_last_twenty_values() -> None:
    (verdict,) = replay(rules(when="entropy < 0.5", streak=30), series(entropy=[0.4 + i / 1000 for i in range(30)]))
    assert "because" in verdict.reason
    assert "entropy < 0.5, 30 steps in a row" in verdict.reason
    assert verdict.evidence["entropy"] == [0.4 + i / 1000 for i in range(10, 30)]


def test_steps_must_increase() -> None:
    monitor = Monitor(rules(when="entropy < 0.5"))
    monitor.observe(StepRecord(3, {"entropy": 1.0}))
    with pytest.raises(ValueError, match="step 3 observed after step 3"):
        monitor.observe(StepRecord(3, {"entropy": 1.0}))


def test_metrics_count_the_steps_each_rule_has_held() -> None:
    monitor = observed(series(entropy=[0.9, 0.4, 0.4]), when="entropy < 0.5", streak=10)
    assert monitor.metrics() == {"rule": 2.0}


def test_the_worst_of_several_verdicts() -> None:
    warn, stop = Verdict("a", "warn", 0, ""), Verdict("b", "stop", 0, "")
    assert worst([warn, stop, warn]) == "stop"
    assert worst([warn]) == "warn"
    assert worst([]) == "pass"
