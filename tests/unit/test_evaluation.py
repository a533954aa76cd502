"""Estimators, paired comparison and the figures of `out/evaluation.json`."""

import random
from itertools import combinations
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.evaluation import EvaluationSettings
from components.evaluation.pairing import detectable, mcnemar, paired_gain
from components.evaluation.passing import pass_at_k
from components.evaluation.results import PromptResult
from components.evaluation.summary import compare, summarise
from components.files import dump_json

SETTINGS = EvaluationSettings(samples=4, bootstrap=500)


def result(
    name: str, *accuracies: float | None, greedy: float | None = 1, family: str = "f", level: float = 1
) -> PromptResult:
    n = len(accuracies)
    return PromptResult(name, family, level, accuracies, greedy, (10,) * n, (False,) * n)


def test_pass_at_k_of_two_policies_is_that_of_the_same_prompts() -> None:
    unknown = [result("hard", 0, 0, 0, None), result("easy", 1, 1, 1, 1)]
    known = [result("hard", 0, 0, 0, 0), result("easy", 1, 1, 1, 1)]
    settings = EvaluationSettings(samples=4, bootstrap=100)
    for before, after in ((unknown, known), (known, unknown)):
        found = compare(before, after, settings, seed=0)
        assert found["sft"]["pass_at_k"] == found["trained"]["pass_at_k"] == 1.0
        assert found["sft"]["pass_at"] == found["trained"]["pass_at"]
        assert found["trained"]["pass_at"]["1"] == 0.5


@pytest.mark.parametrize(("n", "c", "k", "value"), [(8, 2, 4, 0.7857), (16, 1, 4, 0.25), (4, 0, 4, 0), (4, 1, 4, 1)])
def test_worked_numbers_of_pass_at_k(n: int, c: int, k: int, value: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(value, abs=5e-5)


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_the_subsets_with_a_right_sample(case: tuple[int, int, int]) -> None:
    n, c, k = case
    hits = sum(min(subset) < c for subset in combinations(range(n), k))
    assert pass_at_k(n, c, k) == pytest.approx(hits / comb(n, k))


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (4, 5, 2), (4, -1, 2), (4, 1, 0)])
def test_an_undefined_pass_at_k_is_an_error(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="undefined"):
        pass_at_k(n, c, k)


def test_a_clear_gain_has_an_interval_above_zero() -> None:
    gain = paired_gain([0.25] * 50 + [0.5] * 50, [0.5] * 50 + [1.0] * 50, 500, seed=0)
    assert gain.mean == pytest.approx(0.375)
    assert 0.3 < gain.low < gain.mean < gain.high < 0.45


def test_no_difference_has_an_interval_around_zero() -> None:
    gain = paired_gain([0.0, 1.0] * 50, [1.0, 0.0] * 50, 500, seed=0)
    assert gain.mean == 0
    assert gain.low < 0 < gain.high


def test_pairing_removes_the_difference_between_prompts() -> None:
    before = [i / 100 for i in range(90)]
    gain = paired_gain(before, [value + 0.1 + (i % 2) / 1000 for i, value in enumerate(before)], 500, seed=0)
    assert gain.high - gain.low < 0.001


@pytest.mark.parametrize(("n", "other"), [(1, 0.975), (2, 0.842), (30, 0.116), (100, 0.0362)])
def test_prompts_that_all_changed_alike_do_not_make_certain_what_others_do(n: int, other: float) -> None:
    """With the share ``other`` of prompts that change otherwise, n that do not are drawn in one case of forty."""
    assert (1 - other) ** n == pytest.approx(0.025, rel=0.03)
    for before, after in ((0.0, 0.0), (1.0, 1.0), (0.25, 0.75)):
        gain, mean = paired_gain([before] * n, [after] * n, 500, seed=0), after - before
        assert gain.mean == mean
        assert gain.low == pytest.approx((1 - other) * mean - other, abs=1e-3)
        assert gain.high == pytest.approx((1 - other) * mean + other, abs=1e-3)


def test_a_difference_by_rounding_alone_is_none() -> None:
    thirds = paired_gain([0.0, 1 / 3] * 2, [1 / 3, 2 / 3] * 2, 500, seed=0)
    assert thirds.low < 0 < thirds.high
    assert detectable([1 / 3, 2 / 3 - 1 / 3]) is None


def test_a_gain_over_few_prompts_is_called_small_by_those_that_were_scorable_under_both() -> None:
    few = SETTINGS.model_copy(update={"small": 3})
    before = [result("a", 0, 1), result("b", 0, 0), result("c", None, None, greedy=1)]
    after = [result("a", 1, 1), result("b", 1, 1), result("c", 1, 1)]
    found = compare(before, after, few, seed=0)
    assert (found["gain"]["n"], found["gain"]["small"]) == (2, True)
    assert (found["greedy_gain"]["n"], found["greedy_gain"]["small"]) == (3, False)
    assert found["trained"]["families"]["f"]["gain"]["small"]


def test_the_interval_covers_the_truth_about_as_often_as_it_claims() -> None:
    stream = random.Random(1)
    covered = 0
    for trial in range(200):
        after = [stream.gauss(0.1, 1) for _ in range(40)]
        gain = paired_gain([0.0] * 40, after, 300, seed=trial, confidence=0.9)
        covered += gain.low <= 0.1 <= gain.high
    assert 0.8 <= covered / 200 <= 0.97


def test_the_interval_depends_on_the_seed_only() -> None:
    args = ([0.0, 1.0, 0.5, 0.2], [1.0, 0.0, 0.7, 0.9], 200)
    assert paired_gain(*args, seed=3) == paired_gain(*args, seed=3)
    assert paired_gain(*args, seed=3) != paired_gain(*args, seed=4)


@pytest.mark.parametrize(("before", "after"), [([], []), ([1.0], [1.0, 0.0])])
def test_what_cannot_be_paired_is_an_error(before: list[float], after: list[float]) -> None:
    with pytest.raises(ValueError, match="cannot pair"):
        paired_gain(before, after, 100, seed=0)


@pytest.mark.parametrize(
    ("gained", "lost", "p"), [(0, 0, 1.0), (5, 0, 2 / 32), (3, 3, 1.0), (8, 2, 112 / 1024), (1, 0, 1.0)]
)
def test_worked_numbers_of_mcnemar(gained: int, lost: int, p: float) -> None:
    before = [False] * gained + [True] * lost + [True] * 4
    after = [True] * gained + [False] * lost + [True] * 4
    assert mcnemar(before, after) == pytest.approx(p)
    assert mcnemar(after, before) == pytest.approx(p)


@pytest.mark.parametrize(
    ("results", "k", "figures"),
    [
        (  # prompts are averaged, not samples
            [result("a", 1, 1, 0, 0), result("b", None, None, None, 0, greedy=0)],
            *(4, {"pass_at_1": 0.25, "greedy": 0.5, "unscorable_share": 3 / 8}),
        ),
        # Prompts with k scorable samples; partial credit is no right sample; nothing scorable is null and not zero.
        ([result("a", 1, 0, 0, 0), result("b", None, 0, 0, 0)], 4, {"pass_at_k": 1}),
        ([result("a", 0.5, 0.5)], 2, {"pass_at_1": 0.5, "pass_at_k": 0}),
        (
            [result("a", None, None, greedy=None)],
            *(2, {"pass_at_1": None, "pass_at_k": None, "greedy": None, "reward": None}),
        ),
        # Lengths and truncation are over samples.
        (
            [PromptResult("a", "f", 1, (1, 0), 1, (4, 8), (False, True))],
            *(2, {"length_mean": 6, "truncated_share": 0.5}),
        ),
    ],
)
def test_figures_of_the_summary(results: list[PromptResult], k: int, figures: dict[str, float | None]) -> None:
    found = summarise(results, k)
    assert {name: found[name] for name in figures} == figures


def test_reward_parts_and_metrics_are_averaged_over_the_prompts_that_have_them() -> None:
    one = PromptResult("a", "f", 1, (1,), 1, (4,), (False,), 1.5, {"tree": 0.5}, {"levenshtein": 0.25})
    two = PromptResult("b", "f", 1, (0,), 0, (4,), (False,), 0.5, {"tree": 0.0}, {})
    found = summarise([one, two, result("c", None, greedy=None)], k=1)
    assert (found["reward"], found["parts"], found["metrics"]) == (1.0, {"tree": 0.25}, {"levenshtein": 0.25})


def test_slices_by_family_and_difficulty() -> None:
    results = [result("a", 1, 1, family="add", level=1), result("b", 0, 0, family="sub", level=2, greedy=0)]
    found = summarise(results, k=2)
    assert found["families"] == {
        "add": {"prompts": 1, "small": False, "pass_at_1": 1, "greedy": 1},
        "sub": {"prompts": 1, "small": False, "pass_at_1": 0, "greedy": 0},
    }
    assert list(found["difficulty"]) == ["1", "2"]


def test_the_comparison_has_every_figure_of_the_evaluation_file() -> None:
    before = [result(str(i), 0, 0, 0, 1, greedy=0) for i in range(20)]
    after = [result(str(i), 1, 1, 1, 1) for i in range(20)]
    found = compare(before, after, SETTINGS, seed=0)
    assert set(found) == {"prompts", "samples", "k", "ks", "sft", "trained", "gain", "greedy_gain"}
    expected = {"mean": 0.75, "confidence": 0.95, "n": 20, "small": True, "detectable": None}
    assert {key: found["gain"][key] for key in expected} == expected
    assert found["gain"]["low"] < 0.75 < found["gain"]["high"]
    assert found["greedy_gain"]["mean"] == 1
    assert found["greedy_gain"]["mcnemar_p"] == pytest.approx(2 / 2**20)
    assert dump_json(found) == dump_json(compare(before, after, SETTINGS, seed=0))


def test_a_prompt_that_is_unscorable_on_one_side_is_left_out_of_the_gain() -> None:
    before = [result("a", 0, 0, 0, 0), result("b", None, None, None, None)]
    after = [result("a", 1, 1, 1, 1), result("b", 0, 0, 0, 0)]
    assert compare(before, after, SETTINGS, seed=0)["gain"]["mean"] == 1


def test_a_gain_that_no_prompt_defines_is_null() -> None:
    nothing = [result("a", None, None, None, None, greedy=None)]
    found = compare(nothing, nothing, SETTINGS, seed=0)
    assert (found["gain"], found["greedy_gain"]) == (None, None)


def test_other_prompts_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="same prompts"):
        compare([result("a", 1)], [result("b", 1)], SETTINGS, seed=0)


def test_a_result_needs_one_entry_per_sample() -> None:
    with pytest.raises(ValueError, match="one entry per sample"):
        PromptResult("a", "f", 1, (1, 0), 1, (4,), (False, False))
