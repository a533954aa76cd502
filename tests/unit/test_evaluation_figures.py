"""What a comparison could have seen, what lengths and agreement say, and the sentences about the result."""

from __future__ import annotations

import random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.evaluation import EvaluationSettings
from components.evaluation.calibration import agreement, by_length, octave, slices, truncation
from components.evaluation.pairing import detectable, detectable_by_mcnemar, discordant, mcnemar
from components.evaluation.results import PromptResult
from components.evaluation.sentences import result_sentences
from components.evaluation.summary import against_champion, compare

SETTINGS = EvaluationSettings(samples=2, bootstrap=200)


def result(name: str, *accuracies: float | None, answers: tuple[str | None, ...] = (), **more: object) -> PromptResult:
    n = len(accuracies)
    fields = {"lengths": (10,) * n, "truncated": (False,) * n, "greedy": 1.0, "answers": answers, **more}
    return PromptResult(name, "f", 1, accuracies, **fields)  # type: ignore[arg-type]


# Power


def test_the_detectable_difference_by_hand() -> None:
    """(1.960 + 0.842) x sd / sqrt(n), sd of 50 gains of +1 and 50 of 0: 0.5025."""
    assert detectable([1.0, 0.0] * 50) == pytest.approx((1.95996 + 0.84162) * 0.502519 / 10, rel=1e-5)


def test_four_times_as_many_prompts_halve_the_detectable_difference() -> None:
    few, many = detectable([1.0, 0.0, -1.0] * 50), detectable([1.0, 0.0, -1.0] * 200)
    assert few is not None
    assert many is not None
    assert few / many == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("gains", [[], [0.5], [0.0] * 20, [0.25] * 20])
def test_where_nothing_spreads_nothing_is_said(gains: list[float]) -> None:
    assert detectable(gains) is None


@given(st.integers(20, 2000).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))))
def test_the_detectable_difference_of_mcnemar_solves_its_equation(case: tuple[int, int]) -> None:
    n, changed = case
    d, p, z = detectable_by_mcnemar(n, changed), changed / n, NormalDist().inv_cdf
    if d is None:
        assert z(0.975) * p**0.5 + z(0.8) * max(0.0, p - p * p) ** 0.5 > p * n**0.5
    else:
        assert 0 < d <= p
        assert n * d**2 == pytest.approx((z(0.975) * p**0.5 + z(0.8) * max(0.0, p - d * d) ** 0.5) ** 2, rel=1e-6)


def test_mcnemar_finds_the_detectable_difference_about_four_times_in_five() -> None:
    n, changed = 400, 80
    d = detectable_by_mcnemar(n, changed)
    assert d is not None
    gained = (changed / n + d) / 2
    stream, found = random.Random(3), 0
    for _ in range(300):
        draws = [stream.random() for _ in range(n)]
        before = [gained <= x < changed / n for x in draws]
        after = [x < gained for x in draws]
        found += mcnemar(before, after) < 0.05
    assert 0.7 < found / 300 < 0.88


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40))
def test_mcnemar_looks_at_the_prompts_that_changed_alone(pairs: list[tuple[bool, bool]]) -> None:
    before, after = [a for a, _ in pairs], [b for _, b in pairs]
    assert mcnemar(before, after) == pytest.approx(mcnemar([*before, True, False], [*after, True, False]))
    assert discordant(before, after) == discordant(after, before)[::-1]
    assert 0 < mcnemar(before, after) <= 1


# Slices


@pytest.mark.parametrize(
    ("tokens", "name"), [(0, "0"), (1, "1"), (2, "2-3"), (3, "2-3"), (4, "4-7"), (31, "16-31"), (32, "32-63")]
)
def test_lengths_fall_into_octaves(tokens: int, name: str) -> None:
    assert octave(tokens) == name


def test_a_small_slice_is_called_small() -> None:
    results = [result(str(i), 1, prompt_tokens=5, source="book") for i in range(3)] + [result("x", 0, prompt_tokens=9)]
    found = slices(results, small=2)
    assert {name: (row["prompts"], row["small"]) for name, row in found["prompt_length"].items()} == {
        "4-7": (3, False),
        "8-15": (1, True),
    }
    assert set(found["sources"]) == {"book", ""}


def test_every_slice_has_a_paired_gain_of_its_own() -> None:
    before = [result(str(i), 0, 0, source="ab"[i % 2]) for i in range(8)]
    after = [result(str(i), float(i % 2), float(i % 2), source="ab"[i % 2]) for i in range(8)]
    figures = against_champion(compare(before, after, SETTINGS, seed=0), after, after, SETTINGS, seed=0)
    sources = figures["trained"]["sources"]
    assert {name: row["gain"]["mean"] for name, row in sources.items()} == {"a": 0, "b": 1}
    assert {row["gain_over_champion"]["mean"] for row in sources.values()} == {0}
    assert sources["a"]["gain"]["n"] == 4
    assert "gain" not in figures["sft"]["sources"]["a"]


# Lengths, truncation, agreement


def test_accuracy_by_length_and_the_length_of_right_and_wrong() -> None:
    found = by_length([(3, 1.0, False), (2, 0.0, False), (20, 0.0, False), (30, None, True)], small=2)
    assert found["bins"] == [
        {"tokens": "2-3", "completions": 2, "small": False, "accuracy": 0.5},
        {"tokens": "16-31", "completions": 1, "small": True, "accuracy": 0.0},
    ]
    assert (found["right_mean"], found["wrong_mean"]) == (3, 11)


def test_what_truncation_leaves_open() -> None:
    found = truncation([(9, 0.0, True), (9, 1.0, True), (3, 1.0, False), (3, 0.0, False)])
    assert (found["truncated"], found["share"]) == (2, 0.5)
    assert (found["accuracy"], found["of_finished"], found["of_truncated"]) == (0.5, 0.5, 0.5)
    assert (found["if_wrong"], found["if_right"]) == (0.25, 0.75)


@given(st.lists(st.tuples(st.integers(1, 99), st.sampled_from([0.0, 1.0, None]), st.booleans()), max_size=30))
def test_what_is_measured_lies_between_the_bounds(completions: list[tuple[int, float | None, bool]]) -> None:
    found = truncation(completions)
    if found["accuracy"] is None:
        assert found["if_wrong"] is None
    else:
        assert found["if_wrong"] <= found["accuracy"] <= found["if_right"]


def test_agreement_that_is_right_as_often_as_it_says_is_calibrated() -> None:
    sure = [result(f"s{i}", 1, 1, answers=("4", "4")) for i in range(5)]
    found = agreement(sure, small=1)
    assert found is not None
    assert (found["prompts"], found["ece"], found["ece_signed"]) == (5, 0, 0)


def test_the_calibration_error_by_hand() -> None:
    """Two prompts agree wholly and one of them is right; two are split, with a tie of which half is right."""
    results = [
        result("a", 1, 1, answers=("4", "4")),
        result("b", 0, 0, answers=("5", "5")),
        result("c", 1, 0, answers=("4", "5")),
        result("d", 1, 0, answers=("4", "5")),
    ]
    found = agreement(results, small=3)
    assert found is not None
    assert [(row["prompts"], row["agreement"], row["accuracy"], row["small"]) for row in found["bins"]] == [
        (2, 0.5, 0.5, True),
        (2, 1.0, 0.5, True),
    ]
    assert (found["ece"], found["ece_signed"]) == (0.25, 0.25)


def test_a_single_vote_has_no_agreement() -> None:
    assert agreement([result("a", 1, answers=("4",)), result("b", 1, 0)], small=1) is None


# Words


def test_the_sentence_about_a_result_names_gain_interval_and_what_could_have_been_seen() -> None:
    before = [result(str(i), 0, 0, greedy=0.0) for i in range(100)]
    after = [result(str(i), float(i % 2), float(i % 2), greedy=float(i % 2)) for i in range(100)]
    (line,) = result_sentences(compare(before, after, SETTINGS, seed=0))
    assert line.startswith(
        "pass@1 50.0\u00a0% on 100 prompts, +50.0 points over the SFT checkpoint (95\u00a0% interval +"
    )
    assert line.endswith("this comparison could have seen a difference of 14.1 points.")


def test_equal_policies_are_reported_as_such() -> None:
    same = [result(str(i), 1, 0) for i in range(10)]
    (line,) = result_sentences(compare(same, same, SETTINGS, seed=0))
    assert "0.0 points over the SFT checkpoint" in line
    assert "all prompts changed alike" in line


@pytest.mark.parametrize(("prompts", "rough"), [(29, True), (30, False)])
def test_an_interval_over_few_prompts_is_called_rough(prompts: int, rough: bool) -> None:
    before = [result(str(i), 0, 0, greedy=0.0) for i in range(prompts)]
    after = [result(str(i), i % 2, 0, greedy=float(i % 2)) for i in range(prompts)]
    suite = compare(before, after, SETTINGS, seed=0)
    lines = result_sentences({**suite, "suites": {"aime": suite}})
    assert [", rough for so few prompts)" in line for line in lines] == [rough] * 2


def test_what_nothing_defines_is_said_and_not_made_up() -> None:
    nothing = [result("a", None, None, greedy=None)]
    assert result_sentences(compare(nothing, nothing, SETTINGS, seed=0)) == [
        "No prompt could be scored under both, so nothing is known of a gain over the SFT checkpoint."
    ]


def test_prompts_that_were_trained_on_and_cut_completions_are_reported() -> None:
    side = [result(str(i), 1, 0, truncated=(True, False)) for i in range(4)]
    figures = compare(side, side, SETTINGS, seed=0)
    found = {"found": 3, "prompts": 4, "without": {"gain": {"mean": -0.125}, "greedy_gain": None}}
    lines = result_sentences({**figures, "contamination": {"suites": {"test": found}}})
    assert lines[1] == "3 of 4 test prompts occur in the training data; without them the gain is −12.5 points."
    assert lines[2] == "50.0\u00a0% of the completions hit the length limit and could not end."


def test_a_suite_is_reported_by_its_greedy_accuracy() -> None:
    side = [result(str(i), greedy=float(i % 2)) for i in range(10)]
    suite = compare(side, side, SETTINGS, seed=0, samples=0)
    assert (suite["ks"], suite["trained"]["pass_at_1"], suite["gain"]) == ([], None, None)
    assert suite["trained"]["greedy"] == 0.5
    lines = result_sentences({**compare(side, side, SETTINGS, seed=0, samples=0), "suites": {"aime": suite}})
    assert lines[1].startswith("aime: greedy accuracy 50.0\u00a0% on 10 prompts, 0.0 points over the SFT checkpoint")
