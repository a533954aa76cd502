"""Greedy, pass@k and maj@k: worked numbers, and brute force over all subsets."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.evaluation import EvaluationSettings
from components.config.verifiers import ExactVerifier, MathVerifier, NumericVerifier, StructureVerifier
from components.evaluation.answers import final_answer
from components.evaluation.passing import maj_at_k, pass_at_k, passing
from components.evaluation.results import Answered, PromptResult
from components.rewards import build_verifier
from components.types import Prompt

Votes = list[tuple[str | None, float]]
RIGHT = {"a": 1.0, "b": 0.0, "c": 0.0, None: 0.0}
votes = st.lists(st.sampled_from(list(RIGHT)), min_size=1, max_size=7).map(lambda given: [(g, RIGHT[g]) for g in given])


def majority(subset: Votes) -> float:
    """The accuracy of one subset: the most frequent answer, a mean of those that tie, wrong without any."""
    counts = Counter(answer for answer, _ in subset if answer is not None)
    winners = [answer for answer, count in counts.items() if count == max(counts.values())]
    return fmean(RIGHT[winner] for winner in winners) if winners else 0.0


@given(votes.flatmap(lambda given: st.tuples(st.just(given), st.integers(1, len(given)))))
def test_maj_at_k_is_the_mean_over_all_subsets_of_k(case: tuple[Votes, int]) -> None:
    given_votes, k = case
    subsets = list(combinations(given_votes, k))
    assert maj_at_k(given_votes, k) == pytest.approx(fmean(majority(list(subset)) for subset in subsets))


@given(votes)
def test_maj_at_1_is_pass_at_1(given_votes: Votes) -> None:
    assert maj_at_k(given_votes, 1) == pytest.approx(fmean(accuracy for _, accuracy in given_votes))


@given(votes)
def test_the_majority_of_k_is_right_no_more_often_than_one_of_k(given_votes: Votes) -> None:
    right = sum(accuracy == 1 for _, accuracy in given_votes)
    for k in range(1, len(given_votes) + 1):
        assert maj_at_k(given_votes, k) <= pass_at_k(len(given_votes), right, k) + 1e-12


@pytest.mark.parametrize(
    ("answers", "k", "value"),
    [
        ("aab", 3, 1.0),
        ("abb", 3, 0.0),
        ("ab", 2, 0.5),
        ("aabb", 4, 0.5),
        ("abc", 3, 1 / 3),
        ("aabc", 2, 1 / 6 + 4 / 6 * 0.5),
        ("aab", 2, 1 / 3 + 2 / 3 * 0.5),
    ],
)
def test_worked_numbers_of_maj_at_k(answers: str, k: int, value: float) -> None:
    """aabc, k = 2: of six pairs one is aa, four hold an a that ties, one is bc."""
    assert maj_at_k([(answer, RIGHT[answer]) for answer in answers], k) == pytest.approx(value)


def test_a_sample_without_an_answer_has_no_vote_and_takes_a_place() -> None:
    assert maj_at_k([("a", 1.0), (None, 0.0), (None, 0.0)], 3) == 1
    assert maj_at_k([("a", 1.0), (None, 0.0), (None, 0.0)], 1) == pytest.approx(1 / 3)
    assert maj_at_k([(None, 0.0)] * 4, 2) == 0


def test_samples_that_share_an_answer_and_not_their_accuracy_count_with_their_mean() -> None:
    assert maj_at_k([("a", 1.0), ("a", 0.0), ("b", 0.0)], 3) == 0.5


def test_many_samples_are_no_trouble() -> None:
    spread = [(str(i % 9), float(i % 9 == 0)) for i in range(64)]
    assert 0 < maj_at_k(spread, 64) <= 1
    assert maj_at_k(spread, 32) == pytest.approx(maj_at_k(spread[::-1], 32))


@pytest.mark.parametrize("k", [0, 3])
def test_an_undefined_maj_at_k_is_an_error(k: int) -> None:
    with pytest.raises(ValueError, match="undefined"):
        maj_at_k([("a", 1.0), ("b", 0.0)], k)


def test_unscorable_samples_neither_vote_nor_count() -> None:
    one = PromptResult("p", "f", 1, (1, None, 0), 1, (1,) * 3, (False,) * 3, answers=("4", "5", "6"))
    found = passing([one], (1, 2, 3))
    assert found["pass_at"] == {"1": 0.5, "2": 1.0, "3": None}
    assert found["maj_at"] == {"1": 0.5, "2": 0.5, "3": None}


@pytest.mark.parametrize(("samples", "ks"), [(4, (1, 2, 4)), (5, (1, 2, 4, 5)), (1, (1,)), (0, ())])
def test_without_a_wish_k_is_every_power_of_two_and_the_number_of_samples(samples: int, ks: tuple[int, ...]) -> None:
    assert EvaluationSettings().sizes(samples) == ks


def test_more_than_there_are_samples_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="pass@8 needs 8 samples, and there are 4"):
        EvaluationSettings(samples=4, ks=(1, 8))


@pytest.mark.parametrize(
    ("text", "answer"),
    [("6+2=8#618", "618"), ("so #1,000", "1000"), ("#$1000", "1000"), ("no marker", None), ("#  ", None)],
)
def test_numbers_vote_alike_however_they_are_written(text: str, answer: str | None) -> None:
    assert final_answer(text, ExactVerifier()) == answer


def test_an_answer_of_several_lines_is_one_answer() -> None:
    assert final_answer("a\nb", StructureVerifier(kind="structure")) == "a b"


def test_without_a_marker_the_answer_is_what_the_verifier_reads() -> None:
    numeric = NumericVerifier(kind="numeric", marker=None)
    assert final_answer("first 3\nit is 4.", numeric) == "4"
    assert final_answer("\\boxed{7}\nit is 4", numeric) == "4"
    assert final_answer("\\boxed{7}\nit is 4", MathVerifier(kind="math", marker=None)) == "7"
    assert build_verifier(numeric).accuracy(Prompt("p", "?", "4", "4"), "first 3\nit is 4.") == 1


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_grows_with_k_and_with_what_is_right(case: tuple[int, int, int]) -> None:
    n, c, k = case
    assert pass_at_k(n, c, 1) - 1e-12 <= pass_at_k(n, c, k) <= 1
    assert pass_at_k(n, c, k) == pytest.approx(1 - comb(n - c, k) / comb(n, k))
    assert c == n or pass_at_k(n, c, k) <= pass_at_k(n, c + 1, k)


def test_a_kept_answer_is_that_of_its_prompt() -> None:
    result = PromptResult("p", "f", 1, (1.0, None), 1.0, (3, 4), (False, True), answers=("4", None))
    kept = Answered(Prompt("p", "?", "4", "4"), result, "text").to_dict()
    assert Answered.from_dict(Prompt("p", "?", "4", "4"), kept).result == result
    with pytest.raises(ValueError, match="the result of p, not of q"):
        Answered.from_dict(Prompt("q", "?", "4", "4"), kept)
