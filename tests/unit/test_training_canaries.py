"""Probe sets that are due, and those that a jump forces."""

from __future__ import annotations

import json

import pytest
from factories import Judge, policy, settings
from pydantic import ValidationError

from components.config.judgement import CanarySettings, HealthSettings
from components.errors import InputError
from components.files import write_jsonl
from components.health import CanaryBaseline
from components.rollout import Collector, build_engine
from components.training.canaries import JUMP, Canaries
from components.types import Completion


@pytest.fixture
def build(tmp_path):
    def canaries(accuracy, **every: int) -> Canaries:
        write_jsonl(tmp_path / "probe.jsonl", [{"question": f"{i}+1=", "answer": "2"} for i in range(4)])
        micro = policy()
        tested = Collector(micro, build_engine(micro, settings().rollout), Judge(accuracy), settings().rollout)
        return Canaries(
            tested, {name: CanarySettings(path=tmp_path / "probe.jsonl", every=n) for name, n in every.items()}
        )

    return canaries


@pytest.mark.parametrize(
    ("progress", "jump", "due"),
    [
        (0, 0.0, {"often", "seldom"}),
        (1, 0.0, set()),
        (2, 0.0, {"often"}),
        (6, 0.0, {"often", "seldom"}),
        (1, JUMP, set()),
        (1, JUMP + 0.01, {"often", "seldom"}),
    ],
)
def test_a_set_is_answered_every_so_many_steps_of_progress_and_after_a_jump(build, progress, jump, due):
    found = build(lambda _: 1.0, often=2, seldom=3).measure(progress, jump)
    assert set(found) == {f"canary_{name}" for name in due}


def test_the_figure_is_the_share_of_right_ones_among_those_that_could_be_judged(build):
    outcomes = iter([1.0, 0.0, None, 0.0])
    assert build(lambda _: next(outcomes), probe=1).measure(0, 0.0)["canary_probe"] == pytest.approx(1 / 3)


def test_where_nothing_could_be_judged_there_is_no_figure(build):
    assert build(lambda _: None, probe=1).measure(0, 0.0) == {}


def test_every_set_has_a_figure_of_its_own(build):
    outcomes = iter([1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    found = build(lambda _: next(outcomes), first=1, second=1).measure(0, 0.0)
    assert found == {"canary_first": 0.75, "canary_second": 0.25}


def test_a_probe_file_that_was_changed_after_the_settings_were_resolved_is_refused(build, tmp_path):
    build(lambda _: 1.0, probe=1)
    named = CanarySettings(path=tmp_path / "probe.jsonl", sha256="0" * 64)
    with pytest.raises(InputError, match="content has changed"):
        Canaries(build(lambda _: 1.0, probe=1)._collector, {"probe": named})


@pytest.mark.parametrize(
    ("steps", "drops"),
    [
        ([{"a": 0.5}, {"a": 0.25}, {"a": 0.75}], [0.0, 0.25, 0.0]),
        ([{"low": 0.25, "high": 1.0}, {"low": 0.25, "high": 0.5}], [0.0, 0.5]),  # one that is not the lowest falls
        ([{"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 1.0}], [0.0, 0.25]),  # a rise hides nothing
        ([{"a": 1.0}, {"b": 0.25}, {"a": 1.0}, {"b": 0.0}], [0.0, 0.0, 0.0, 0.25]),  # each has its own beginning
        ([{"a": 1.0}, {}, {"a": 0.0}], [0.0, None, 1.0]),
    ],
)
def test_the_drop_is_the_largest_fall_of_a_set_below_its_own_first_score(steps, drops):
    baseline = CanaryBaseline()
    found = [baseline.observe({f"canary_{name}": score for name, score in step.items()}) for step in steps]
    assert [one.get("canary_drop") for one in found] == drops


def test_a_resumed_baseline_goes_on_from_the_first_scores():
    before, after = CanaryBaseline(), CanaryBaseline()
    before.observe({"canary_a": 1.0})
    after.load_state_dict(json.loads(json.dumps(before.state_dict())))
    assert after.observe({"canary_a": 0.25}) == {"canary_drop": 0.75}
    with pytest.raises(ValueError, match="state of the canaries"):
        after.load_state_dict({"first": {}, "last": {}})


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("drop", "canary_drop is a signal of its own"),
        ("two words", "no name of a probe set"),
        ("2nd", "no name of a probe set"),
        ("", "no name of a probe set"),
        ("größe", "no name of a probe set"),
    ],
)
def test_a_set_has_a_name_that_a_rule_can_say(name, problem):
    with pytest.raises(ValidationError, match=problem):
        HealthSettings(canaries={name: CanarySettings(path="probe.jsonl")})


def test_answers_are_greedy_and_the_same_every_time(build):
    seen: list[Completion] = []
    canaries = build(lambda completion: seen.append(completion) or 1.0, probe=1)
    canaries.measure(0, 0.0)
    canaries.measure(1, 0.0)
    assert len(seen) == 8
    assert [c.token_ids for c in seen[:4]] == [c.token_ids for c in seen[4:]]
