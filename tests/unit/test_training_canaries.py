"""Probe sets while training: which are due, those that a jump forces, and what a step's record says of them."""

from __future__ import annotations

import json

import pytest
from factories import Judge, policy, settings
from pydantic import ValidationError

from components.canaries.baseline import CanaryBaseline
from components.canaries.items import Measured, Outcome, Probe, ProbeSet
from components.canaries.measuring import measure_likelihood, scores_of
from components.canaries.sets import probe_sets
from components.config.canaries import CanarySettings
from components.config.judgement import HealthSettings
from components.errors import InputError
from components.files import write_jsonl
from components.learner.build import build_learner
from components.rollout import Collector, build_engine
from components.training.canaries import Canaries, is_due
from components.types import Completion


@pytest.fixture
def build(tmp_path):
    def canaries(accuracy, **every: int) -> Canaries:
        write_jsonl(tmp_path / "probe.jsonl", [{"question": f"{i}+1=", "answer": "2"} for i in range(4)])
        micro = policy()
        tested = Collector(micro, build_engine(micro, settings().rollout), Judge(accuracy), settings().rollout)
        sets = {name: CanarySettings(path=tmp_path / "probe.jsonl", every=n) for name, n in every.items()}
        return Canaries(tested, micro, sets)

    return canaries


def scores(found: list[Measured]) -> dict[str, list[float | None]]:
    return {one.set.name: [outcome.score for outcome in one.outcomes] for one in found}


@pytest.mark.parametrize(
    ("progress", "jump", "due"),
    [
        (0, 0.0, {"often", "seldom"}),
        (1, 0.0, set()),
        (2, 0.0, {"often"}),
        (6, 0.0, {"often", "seldom"}),
        (1, 0.3, set()),
        (1, 0.31, {"often", "seldom"}),
    ],
)
def test_a_set_is_answered_every_so_many_steps_of_progress_and_after_a_jump(build, progress, jump, due):
    assert set(scores(build(lambda _: 1.0, often=2, seldom=3).generation(progress, jump))) == due


@pytest.mark.parametrize(("limit", "due"), [(0.3, True), (0.8, False), (None, False)])
def test_a_set_says_itself_which_jump_forces_it(limit, due):
    assert is_due(CanarySettings(path="p", jump=limit), 1, 0.6) is due


def test_every_set_has_scores_of_its_own_and_what_cannot_be_judged_has_none(build):
    outcomes = iter([1.0, 0.0, None, 0.0, 1.0, 0.0, 0.0, 0.0])
    found = build(lambda _: next(outcomes), first=1, second=1).generation(0, 0.0)
    assert scores(found) == {"first": [1.0, 0.0, None, 0.0], "second": [1.0, 0.0, 0.0, 0.0]}
    signals = CanaryBaseline({name: CanarySettings(path="p") for name in ("first", "second")}).observe(found)
    assert signals["canary_first"] == pytest.approx(1 / 3)
    assert signals["canary_second"] == 0.25


def test_where_nothing_could_be_judged_there_is_no_signal(build):
    found = build(lambda _: None, probe=1).generation(0, 0.0)
    assert CanaryBaseline({"probe": CanarySettings(path="p")}).observe(found) == {}


def test_answers_are_greedy_and_the_same_every_time(build):
    seen: list[Completion] = []
    canaries = build(lambda completion: seen.append(completion) or 1.0, probe=1)
    canaries.generation(0, 0.0)
    canaries.generation(1, 0.0)
    assert len(seen) == 8
    assert [c.token_ids for c in seen[:4]] == [c.token_ids for c in seen[4:]]


def test_a_probe_file_that_was_changed_after_the_settings_were_resolved_is_refused(tmp_path):
    write_jsonl(tmp_path / "probe.jsonl", [{"question": "1+1=", "answer": "2"}])
    named = CanarySettings(path=tmp_path / "probe.jsonl", sha256="0" * 64)
    with pytest.raises(InputError, match="content has changed"):
        probe_sets({"probe": named})


@pytest.mark.parametrize("by", ["generation", "likelihood"])
def test_a_probe_that_is_too_long_for_the_policy_stops_the_run_before_it_starts(tmp_path, by):
    row = {"question": "1" * 90, "answer": "2", "wrong": ["3"]}
    write_jsonl(tmp_path / "probe.jsonl", [row])
    micro = policy()
    tested = Collector(micro, build_engine(micro, settings().rollout), Judge(lambda _: 1.0), settings().rollout)
    with pytest.raises(InputError, match="positions"):
        Canaries(tested, micro, {"long": CanarySettings(path=tmp_path / "probe.jsonl", by=(by,))})


def test_the_learner_scores_as_the_policy_whose_weights_it_has():
    chosen = {"sums": CanarySettings(generated="carries", items=8, by=("likelihood",), every=3)}
    micro = policy()
    learner = build_learner(micro, settings())
    canaries = Canaries(None, micro, chosen)
    (found,) = canaries.likelihood(learner, 0, 0.0)
    expected = measure_likelihood(probe_sets(chosen)["sums"], chosen["sums"], micro, scores_of(micro, 1.0))
    assert [o.margin for o in found.outcomes] == pytest.approx([o.margin for o in expected.outcomes], abs=1e-4)
    assert canaries.generation(0, 0.0) == canaries.likelihood(learner, 1, 0.0) == []


# Signals


def measured(values, name="a", by="generation", strata=None, margin=None) -> Measured:
    probes = tuple(Probe(str(i), ("?",), "pattern", stratum=s) for i, s in enumerate(strata or [""] * len(values)))
    return Measured(ProbeSet(name, probes, ""), by, tuple(Outcome(value, margin=margin) for value in values))


def baseline(**limits) -> CanaryBaseline:
    named = {"a": CanarySettings(path="p", **limits), "b": CanarySettings(path="p", level="stop")}
    return CanaryBaseline(named)


@pytest.mark.parametrize(
    ("steps", "drops"),
    [
        ([{"a": 0.5}, {"a": 0.25}, {"a": 0.75}], [0.0, 0.25, 0.0]),
        ([{"a": 0.25, "b": 1.0}, {"a": 0.25, "b": 0.5}], [0.0, 0.5]),  # one that is not the lowest falls
        ([{"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 1.0}], [0.0, 0.25]),  # a rise hides nothing
        ([{"a": 1.0}, {"b": 0.25}, {"a": 1.0}, {"b": 0.0}], [0.0, 0.0, 0.0, 0.25]),  # each has its own beginning
        ([{"a": 1.0}, {}, {"a": 0.0}], [0.0, None, 1.0]),
    ],
)
def test_the_drop_is_the_largest_fall_of_a_set_below_its_own_first_score(steps, drops):
    tested = baseline()
    found = [tested.observe([measured([score] * 4, name) for name, score in step.items()]) for step in steps]
    assert [one.get("canary_drop") for one in found] == drops


def test_a_rise_in_one_stratum_hides_no_fall_in_another():
    tested, strata = baseline(max_drop=0.2), ["to be refused"] * 4 + ["to be answered"] * 4
    tested.observe([measured([1.0] * 4 + [0.0] * 4, strata=strata)])
    found = tested.observe([measured([0.0] * 4 + [1.0] * 4, strata=strata)])
    assert (found["canary_a"], found["canary_drop"], found["canaries_beyond_rollback"]) == (0.5, 1.0, 1.0)


@pytest.mark.parametrize(
    ("limits", "fallen", "beyond"),
    [
        ({"max_drop": 0.05}, 0, 0.0),
        ({"max_drop": 0.05}, 3, 0.0),  # of a hundred: within the limit
        ({"max_drop": 0.05}, 6, 1.0),
        ({"max_drop": 0.10}, 6, 0.0),  # every set has its own limit
        ({"max_drop": 0.05, "max_drop_se": 3.0}, 6, 0.0),  # 2.5 standard errors
    ],
)
def test_a_set_acts_when_it_falls_measurably_beyond_its_own_limit(limits, fallen, beyond):
    tested = baseline(**limits)
    tested.observe([measured([1.0] * 100)])
    assert tested.observe([measured([0.0] * fallen + [1.0] * (100 - fallen))])["canaries_beyond_rollback"] == beyond


def test_the_sets_of_each_level_are_counted_apart_and_each_way_of_measuring_has_its_own_signal():
    tested = baseline(level="warn")
    tested.observe([measured([1.0] * 40), measured([1.0] * 40, "b", "likelihood")])
    found = tested.observe([measured([0.0] * 40), measured([0.5] * 40, "b", "likelihood")])
    assert found == {
        "canary_a": 0.0,
        "likelihood_b": 0.5,
        "canary_drop": 1.0,
        "canaries_beyond_warn": 1.0,
        "canaries_beyond_stop": 1.0,
    }


def test_a_set_that_is_sure_of_itself_acts_by_its_margin_before_its_score_moves():
    tested, sure = baseline(max_margin_drop=0.3, by=("generation", "likelihood")), [1.0] * 20
    steps = [
        tested.observe([measured(sure), measured([0.99] * 20, by="likelihood", margin=margin)])
        for margin in (6.0, 5.8, 5.6)
    ]
    assert [step["canaries_beyond_rollback"] for step in steps] == [0.0, 0.0, 1.0]
    assert [step["canary_drop"] for step in steps] == [0.0] * 3
    assert steps[-1]["margin_a"] == pytest.approx(5.6)


def test_a_set_whose_margin_is_no_finite_number_any_more_acts_though_its_score_cannot_fall():
    tested = baseline(max_margin_drop=0.3, by=("generation", "likelihood"))
    steps = [tested.observe([measured([0.0] * 20, by="likelihood", margin=margin)]) for margin in (-20.0, None)]
    assert [step["canaries_beyond_rollback"] for step in steps] == [0.0, 1.0]


def test_a_resumed_baseline_goes_on_from_the_first_scores():
    before, after = baseline(), baseline()
    before.observe([measured([1.0, None, 1.0])])
    after.load_state_dict(json.loads(json.dumps(before.state_dict())))
    assert after.observe([measured([0.0, 1.0, 0.5])])["canary_drop"] == 0.75
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


def test_a_set_of_a_file_that_is_extended_can_be_left_out():
    assert set(HealthSettings(canaries={"a": {"generated": "names"}, "b": None}).canaries) == {"a"}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "needs `path` or `generated`"),
        ({"path": "p", "generated": "names"}, "needs `path` or `generated`"),
        ({"generated": "names", "format": "bbq"}, "a generated set has none"),
        ({"path": "p", "format": "crows_pairs"}, "never answered: set by"),
        ({"path": "p", "by": ("likelihood", "likelihood")}, "names each way once"),
        ({"path": "p", "format": "format", "pattern": "("}, "no regular expression"),
    ],
)
def test_settings_that_make_no_probe_set_are_refused_in_words(fields, problem):
    with pytest.raises(ValidationError, match=problem):
        CanarySettings(**fields)
