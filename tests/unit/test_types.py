"""The records: unscorable is never zero, raw accuracy is never shaped."""

from __future__ import annotations

import json

import pytest
from factories import group, prompt, score

from components.types import GateCheck, Prompt, Score, StepRecord, Verdict, mean_by_name


def test_the_reward_is_the_accuracy_plus_the_shaping_parts():
    assert score(1.0, overlong=-0.25).reward == 0.75
    assert score(1.0, overlong=-0.25).accuracy == 1.0


def test_the_weight_is_what_accuracy_adds_to_the_reward_and_leaves_accuracy_raw():
    found = Score(0.5, {"tree": 0.25}, weight=2.0, metrics={"levenshtein": 9.0})
    assert found.rewards == {"accuracy": 1.0, "tree": 0.25}
    assert (found.reward, found.accuracy) == (1.25, 0.5)
    assert Score(1.0, {"tree": 0.25}, weight=0.0).rewards == {"accuracy": 0.0, "tree": 0.25}


def test_an_unscorable_completion_has_no_reward():
    with pytest.raises(ValueError, match="timeout"):
        _ = score(None).reward
    with pytest.raises(ValueError, match="timeout"):
        _ = score(None).rewards


def test_means_by_name_are_over_the_rows_that_have_the_name():
    assert mean_by_name([{"a": 1.0, "b": 4.0}, {"a": 2.0}, {}]) == {"a": 1.5, "b": 4.0}
    assert mean_by_name([]) == {}


@pytest.mark.parametrize(("accuracy", "reason"), [(None, None), (0.0, "timeout")])
def test_a_score_has_either_an_accuracy_or_a_reason(accuracy, reason):
    with pytest.raises(ValueError, match="either an accuracy or the reason"):
        Score(accuracy, {}, reason)


@pytest.mark.parametrize(
    ("accuracies", "mean", "informative"),
    [
        ([1.0, 0.0, 0.0, 0.0], 0.25, True),
        ([1.0, 1.0], 1.0, False),
        ([1.0, None, 1.0], 1.0, False),
        ([1.0, None, 0.0], 0.5, True),
        ([0.0], 0.0, False),
        ([None, None], None, False),
    ],
)
def test_a_group_counts_its_scorable_completions_only(accuracies, mean, informative):
    assert (group(accuracies).mean_accuracy, group(accuracies).informative) == (mean, informative)


def test_records_are_plain_json():
    assert Prompt(**json.loads(json.dumps(prompt(3).to_dict()))) == prompt(3)
    record = StepRecord(1, {"accuracy": 0.5}, {"lr_scale": 1})
    assert record.to_dict() == {"step": 1, "signals": {"accuracy": 0.5}, "notes": {"lr_scale": 1}}
    verdict = Verdict("rule", "stop", 3, "why", {"accuracy": [0.5, None]})
    assert json.loads(json.dumps(verdict.to_dict()))["evidence"] == {"accuracy": [0.5, None]}
    assert GateCheck("gain", "pass", "+3").to_dict() == {"name": "gain", "result": "pass", "evidence": "+3"}
