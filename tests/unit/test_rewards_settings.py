"""The settings of the reward: which parts there are, what they are worth, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from components.config import Settings
from components.config.inputs import input_sections
from components.config.reading import apply_override, merge
from components.config.reward import RewardSettings

STRUCTURE = {"kind": "structure"}


def reward(**sections: Any) -> RewardSettings:
    return RewardSettings.model_validate(sections)


@pytest.mark.parametrize(
    ("sections", "names"),
    [
        ({}, ["accuracy"]),
        ({"soft_overlong": {"limit": 9, "cache": 2}}, ["accuracy", "overlong"]),
        ({"consistency": {"kind": "embedded"}}, ["accuracy", "consistency"]),
        ({"verifier": STRUCTURE}, ["accuracy", "jaccard_class", "jaccard_function", "jaccard_parameter"]),
        (
            {"verifier": {**STRUCTURE, "tree": True}},
            ["accuracy", "jaccard_class", "jaccard_function", "jaccard_parameter", "tree"],
        ),
    ],
)
def test_the_settings_know_the_parts_that_they_produce(sections, names):
    assert list(reward(**sections).names) == names
    assert reward(**sections, weights=dict.fromkeys(names, 0.5)).weight(names[-1]) == 0.5


def test_a_part_is_worth_one_unless_a_weight_is_given():
    settings = reward(verifier=STRUCTURE, weights={"accuracy": 0})
    assert (settings.weight("accuracy"), settings.weight("jaccard_class")) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ({"weights": {"acuracy": 1}}, "weights names acuracy; the parts of the reward are accuracy here"),
        ({"weights": {"tree": 1}, "verifier": STRUCTURE}, "names tree; .* accuracy, jaccard_class, jaccard_function"),
        ({"weights": {"accuracy": -1}}, "greater than or equal to 0"),
        ({"weights": {"accuracy": float("inf")}}, "finite"),
        ({"weights": {"accuracy": 0}}, "nothing to be rewarded for"),
        ({"weights": {"accuracy": 0}, "soft_overlong": {"limit": 9, "cache": 2}}, "nothing to be rewarded for"),
        ({"consistency": {"kind": "embedded", "marker": "####"}}, r"consistency.marker \('####'\) must be verifier"),
        ({"consistency": {"kind": "embedded"}, "verifier": {"kind": "numeric", "marker": None}}, r"\(None\)"),
        ({"consistency": {"kind": "embedded", "marker": ""}, "verifier": STRUCTURE}, "at least 1 character"),
        ({"consistency": {"kind": "nli"}}, "path"),
        ({"verifier": {"kind": "code", "seconds": 10}}, r"verifier.seconds \(10\) must be less than sandbox.timeout"),
        (
            {"verifier": {"kind": "code", "memory_mb": 513}},
            r"verifier.memory_mb \(513\) cannot exceed sandbox.memory_mb",
        ),
    ],
)
def test_what_would_reward_nothing_or_something_else_is_refused(sections, problem):
    with pytest.raises(ValidationError, match=problem):
        reward(**sections)


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ({"kind": "code", "seconds": 10}, r"audit.second.seconds \(10\) must be less than sandbox.timeout \(10\)"),
        ({"kind": "code", "memory_mb": 513}, r"audit.second.memory_mb \(513\) cannot exceed sandbox.memory_mb \(512\)"),
    ],
)
def test_a_second_verifier_that_runs_code_fits_the_sandbox_too(second, problem):
    with pytest.raises(ValidationError, match=problem):
        Settings.model_validate({"audit": {"second": second}})
    sandbox = {"timeout": 11, "memory_mb": 513}
    assert Settings.model_validate({"audit": {"second": second}, "reward": {"sandbox": sandbox}}).audit.second


def test_a_classifier_folder_is_an_input_that_gets_a_digest():
    tree = Settings(reward=reward(consistency={"kind": "nli", "path": "models/crm"})).model_dump(mode="json")
    assert [section["path"] for section in input_sections(tree)] == ["models/crm"]
    judge = {"kind": "classifier", "path": "models/judge", "label": "right"}
    tree = Settings(reward=reward(verifier=judge)).model_dump(mode="json")
    assert [section["path"] for section in input_sections(tree)] == ["models/judge"]
    assert input_sections(Settings().model_dump(mode="json")) == []


@pytest.mark.parametrize("change", [{"task": "building_rules"}, {"kind": "generated", "task": "building_rules"}])
def test_another_task_keeps_the_kind_and_inherits_nothing_else(change):
    below = Settings().model_dump(mode="json")["data"]
    merged = merge(below, {"source": change})
    assert merged["source"] == {"kind": "generated", "task": "building_rules"}
    assert merged["splits"] == below["splits"]
    apply_override(below, "source.task=building_rules")
    assert below["source"] == {"kind": "generated", "task": "building_rules"}


def test_the_same_task_keeps_the_other_keys():
    source = merge(Settings().model_dump(mode="json")["data"]["source"], {"task": "arithmetic", "levels": 2})
    assert (source["levels"], source["rows"], source["carry_free"]) == (2, 16000, 0.4)
