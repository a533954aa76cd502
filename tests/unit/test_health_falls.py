"""Falls of held-out accuracy: how soon they are found, in which family, and how seldom nothing is taken for one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from factories import group, prompt

from components.config.judgement import RuleSettings
from components.files import dump_json, load_json
from components.health.falls import ALL, Falls, below, best, counts, fallen
from components.health.responses.under_watch import FaultAttribution
from components.health.sequential import Count, bet, divergence, evidence, fell, lower_bound
from components.types import Verdict

LIMIT = 9.2
"""That of rule `accuracy_fell`."""
FAMILIES, ANSWERS = 4, 32
"""Of a measurement: 32 answers a family."""

Truth = Callable[[int, int], float]


def watched(truth: Truth, steps: int, seed: int) -> tuple[int, str] | None:
    """When, and of which stream, evidence reaches the limit; ``truth(family, step)`` are the accuracies."""
    random, falls = np.random.default_rng(seed), Falls()
    for step in range(steps):
        found = {str(k): Count(int(random.binomial(ANSWERS, truth(k, step))), ANSWERS) for k in range(FAMILIES)}
        found[ALL] = sum(found.values(), Count(0, 0))
        said = falls.observe(step, found)
        if max(said.values()) > LIMIT:
            return step, max(said, key=lambda name: said[name])
    return None


@pytest.mark.parametrize(
    "truth",
    [
        lambda k, t: 0.7,
        lambda k, t: min(0.95, 0.1 + 0.04 * t),
        lambda k, t: 0.6 + 0.04 * math.sin(t + k),
        lambda k, t: 0.02,
        lambda k, t: 1.0,
    ],
    ids=["flat", "rising", "wobbling", "hardly any right", "all right"],
)
def test_of_thirty_healthy_runs_of_thirty_measurements_none_is_taken_for_a_fall(truth: Truth) -> None:
    assert [watched(truth, 30, seed) for seed in range(30)] == [None] * 30


def test_a_family_that_loses_most_is_found_within_two_measurements_and_named() -> None:
    found = [watched(lambda k, t: 0.12 if k == 2 and t >= 10 else 0.73, 20, seed) for seed in range(8)]
    assert all(one is not None and 10 <= one[0] <= 11 and one[1] in ("2", ALL) for one in found)
    assert sum(one is not None and one[1] == "2" for one in found) >= 6


def test_half_of_a_family_is_found_later_and_all_that_fall_a_little_together() -> None:
    half = [watched(lambda k, t: 0.35 if k == 1 and t >= 10 else 0.76, 30, seed) for seed in range(8)]
    assert all(one is not None and one[0] >= 10 for one in half)
    together = [watched(lambda k, t: 0.5 if t >= 10 else 0.7, 30, seed) for seed in range(8)]
    assert sum(one is not None for one in together) >= 7


def test_the_state_of_the_streams_is_json_and_goes_on_to_the_same_evidence() -> None:
    one = Falls()
    for step, right in enumerate((20, 22, 21)):
        one.observe(step, {ALL: Count(right, 32)})
    again = Falls()
    again.load_state_dict(json.loads(json.dumps(one.state_dict())))
    assert again.observe(3, {ALL: Count(9, 32)}) == one.observe(3, {ALL: Count(9, 32)})
    assert again.since(ALL) == one.since(ALL) == 2
    with pytest.raises(ValueError, match="state of all"):
        again.load_state_dict({ALL: {"best": 1.0}})


def test_the_last_measurement_before_a_fall_is_known_however_long_it_takes_to_be_sure() -> None:
    falls = Falls()
    for step in range(0, 50, 5):
        falls.observe(step, {ALL: Count(25, 32)})
    for step in range(50, 80, 5):
        found = falls.observe(step, {ALL: Count(14, 32)})
    assert found[ALL] > LIMIT and falls.since(ALL) == 45


def test_counts_are_of_all_prompts_and_of_each_family_where_there_are_several() -> None:
    first, second = (replace(prompt(1), family=family) for family in "ab")
    groups = [group([1, 0, 1], prompt=first), group([0, 0], prompt=second), group([None, 1], prompt=second)]
    assert counts(groups) == {ALL: (3, 6), "a": (2, 3), "b": (1, 3)}
    assert counts(groups[:1]) == {ALL: (2, 3)}
    assert counts([group([None])]) == {}


# What the same policy is worth measured again, and what it was worth at its best


def test_the_same_policy_measured_twice_differs_by_chance_only() -> None:
    random = np.random.default_rng(0)
    pairs = random.binomial(128, 0.5, size=(2000, 2)).tolist()
    assert sum(fell(Count(one, 128), Count(other, 128)) > 5 for one, other in pairs) <= 10
    assert fell(Count(61, 128), Count(36, 128)) > 5  # .48, then .28
    assert fell(Count(36, 128), Count(61, 128)) == 0


def test_families_share_the_rate_of_false_alarms() -> None:
    before = {ALL: Count(70, 100), "a": Count(40, 50)}
    after = {ALL: Count(55, 100), "a": Count(20, 50), "new": Count(0, 9)}
    assert fallen(before, after) == pytest.approx(
        {name: fell(before[name], after[name]) - math.log(2) for name in (ALL, "a")}
    )
    assert below(before, after) == ("a",)


def test_the_best_is_what_is_surely_high_and_no_lucky_few() -> None:
    known = {ALL: Count(70, 100)}
    assert best(known, {ALL: Count(3, 3), "a": Count(1, 2)}) == {ALL: Count(70, 100), "a": Count(1, 2)}
    assert best(known, {ALL: Count(95, 100)})[ALL] == Count(95, 100)


# The pieces, by hand


def test_a_bet_multiplies_as_in_the_worked_example() -> None:
    (small, *_, large) = bet(Count(0, 1), 0.5)  # null .5: stakes .1/.5 and .8/.5
    assert math.exp(small) == pytest.approx(1 + 0.2 * 0.5)
    assert math.exp(large) == pytest.approx(1 + 1.6 * 0.5)
    assert math.exp(bet(Count(1, 1), 0.5)[-1]) == pytest.approx(1 - 1.6 * 0.5)


def test_a_resumed_run_states_what_is_below_and_which_measure_is_broken_as_one_that_never_stopped() -> None:
    before, after = ({name: Count(right, 100) for name in (ALL, "sub", "add")} for right in (90, 30))
    resumed = {name: Count(*count) for name, count in load_json(dump_json(before)).items()}
    assert below(before, after) == below(resumed, after) == (ALL, "sub", "add")
    parts = {"policy": "policy", "zeros": "verifier", "ends": "sampler"}
    rules = {name: RuleSettings(when="accuracy < 0", level="stop", why="w", part=part) for name, part in parts.items()}
    live, again = FaultAttribution(rules), FaultAttribution(rules)
    for name in ("zeros", "ends"):
        live.noted(Verdict(name, "stop", 3, "r"))
    again.load_state_dict(load_json(dump_json(live.state_dict())))
    grave = Verdict("policy", "rollback", 4, "r")
    assert live.broken_measure(grave) == again.broken_measure(grave) == "ends"


def test_a_bet_is_fair_on_average_where_the_null_is_just_true() -> None:
    for null in (0.2, 0.5, 0.9):
        won = [math.exp(one) for one in bet(Count(1, 1), null)]
        lost = [math.exp(one) for one in bet(Count(0, 1), null)]
        assert [null * w + (1 - null) * z for w, z in zip(won, lost, strict=True)] == pytest.approx([1.0] * len(won))


def test_evidence_is_the_mean_of_the_stakes() -> None:
    assert evidence([0.0, math.log(3)]) == pytest.approx(math.log(2))


@pytest.mark.parametrize(("right", "of"), [(0, 10), (5, 10), (10, 10), (90, 100)])
def test_a_lower_bound_lies_where_the_divergence_is_that_many_nats(right: int, of: int) -> None:
    bound = lower_bound(Count(right, of), 3.0)
    assert bound <= right / of
    assert bound == 0 or of * divergence(right / of, bound) == pytest.approx(3.0, abs=1e-6)
