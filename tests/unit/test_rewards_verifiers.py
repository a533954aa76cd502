"""What counts as right, and what length costs."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config import reward
from components.config.base import Section
from components.rewards import VERIFIERS, build_verifier
from components.rewards.base import ExactVerifier
from components.rewards.numeric import NumericVerifier
from components.rewards.scorer import soft_overlong
from components.types import Prompt


def prompt(answer: str) -> Prompt:
    return Prompt(id="p", text="?", answer=answer, solution="")


@pytest.mark.parametrize(
    ("texts", "accuracy"),
    [(("6*7=42#42", "6*7=42# 42 \n", "#41#42"), 1.0), (("#42#41", "#42.0", "42", "#", ""), 0.0)],
)
def test_exact_compares_what_follows_the_last_marker(texts, accuracy):
    found = {text: ExactVerifier(marker="#").accuracy(prompt("42"), text) for text in texts}
    assert found == dict.fromkeys(texts, accuracy)


def test_an_empty_marker_takes_the_whole_text():
    assert ExactVerifier(marker="").accuracy(prompt("forty-two"), " forty-two ") == 1.0


@given(st.integers(-(10**30), 10**30))
def test_integers_of_any_length_are_read_exactly_with_and_without_commas(number):
    verifier = NumericVerifier(marker=None, tolerance=0)
    found = [verifier.accuracy(prompt(str(number)), f"{text:,}") for text in (number, number + 1)]
    assert found == [1.0, 0.0]


@pytest.mark.parametrize(
    ("texts", "accuracy"),
    [
        (["48/2 = 24\n#### 72", "#### 72.", "#### $72.00", "#### 72 clips (72.0)", "#### 70\n#### 72"], 1.0),
        (["#### 72\nThat is 2 more than 70."], 1.0),
        (["#### 72 clips, not 70", "#### 70 72 74", "#### 72.0001", "#### -72", "72", "#### clips", ""], 0.0),
        (["#### " + "9" * 10_000], 0.0),
    ],
)
def test_numeric_compares_the_number_after_the_last_marker(texts, accuracy):
    verifier = NumericVerifier(marker="####", tolerance=1e-6)
    assert [verifier.accuracy(prompt("72"), text) for text in texts] == [accuracy] * len(texts)


def test_without_a_marker_the_last_number_counts():
    verifier = NumericVerifier(marker=None, tolerance=0)
    assert verifier.accuracy(prompt("72"), "48 and 24 make 72 in all") == 1.0
    assert verifier.accuracy(prompt("72"), "72 is 48 and 24") == 0.0


def test_tolerance_is_relative_to_the_reference():
    verifier = NumericVerifier(marker=None, tolerance=0.01)
    assert verifier.accuracy(prompt("1000.5"), "1010.5") == 1.0
    assert verifier.accuracy(prompt("1000.5"), "1011") == 0.0
    assert verifier.accuracy(prompt("0"), "0.001") == 0.0


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        *[("2000000", "2000001"), ("123456789", "123456790"), ("1" * 50, "1" * 49 + "2"), ("1000", "1010")],
        *[("2000000", "2000001.5"), ("2000000", "2000000.5"), ("5000000", "5000004.9"), ("-400", "-400.5")],
    ],
)
def test_whole_numbers_must_be_the_same_however_large(reference, answer):
    verifier = NumericVerifier("####", tolerance=0.01)
    assert verifier.accuracy(prompt(reference), f"#### {answer}") == 0.0
    assert verifier.accuracy(prompt(reference), f"#### {reference}.0") == 1.0
    assert verifier.accuracy(prompt(reference), f"#### {reference}.49") == 1.0


@pytest.mark.parametrize(
    ("reference", "right", "wrong"),
    [
        (
            "5",
            ["5 cm^2", r"5 \text{m}^{2}", "-(-5)", "*5*."],
            ["x^25", "\u20135", "\u20145", "\u20105", "-(5)", "- (5)", r"-\$5", r"-\boxed{5}", "5!", "(5)!", "5²", "√5",
             r"\sqrt{5}", "1/0 5", "5+5", "5 5", "5*5", "5(5)", r"\frac{5}{5}", "5 million", r"5\text{ million}", "5k"],
        ),
        ("-5", ["\u20135", "\u20125", "\u2212(5)"], []),
        ("25", [], ["x^25"]),
        ("2", [], ["cm^2"]),
        ("1/2", [r"\frac{1}{2}"], []),
        ("-1/2", [r"-\frac{1}{2}"], []),
        ("3.5", [r"3\frac{1}{2}"], []),
        (r"\frac{1}{2}", ["0.5"], []),
        ("5000000", ["5 million"], []),
        ("5 million", ["5,000,000"], []),
        ("5000", ["$5k"], []),
        ("1000", ["1{,}000"], []),
    ],
)  # fmt: skip
def test_what_stands_around_a_number_is_part_of_it(reference, right, wrong):
    found = {text: NumericVerifier("####", 1e-6).accuracy(prompt(reference), f"#### {text}") for text in right + wrong}
    assert found == dict.fromkeys(right, 1.0) | dict.fromkeys(wrong, 0.0)


def sections(union: object) -> dict[str, type[Section]]:
    """Kind -> settings section, of a union of them."""
    members = get_args(get_args(union)[0])
    return {get_args(section.model_fields["kind"].annotation)[0]: section for section in members}


def test_every_verifier_of_the_settings_is_registered():
    assert {*sections(reward.Verifier), *sections(reward.Consistency)} == {*VERIFIERS, "python"}


@pytest.mark.parametrize(
    ("kind", "answer", "right"),
    [
        ("exact", "1", "#### 1"),
        ("numeric", "1", "#### 1.0"),
        ("math", "1", "\\boxed{1}"),
        ("multiple_choice", "B", "The answer is B"),
        ("json", "[1]", "[1]"),
        ("code", "assert f(2) == 4", "```python\nf = lambda x: x * x\n```"),
        ("structure", "class A { f() }", "class A { f() }"),
    ],
)
def test_every_verifier_builds_from_its_kind_alone_and_has_the_parts_that_its_settings_name(kind, answer, right):
    settings = sections(reward.Verifier)[kind](kind=kind)
    found = build_verifier(settings).judge(prompt(answer), right)
    assert found.accuracy == build_verifier(settings).accuracy(prompt(answer), right) == 1.0
    assert tuple(found.parts) == settings.parts


@pytest.mark.parametrize(
    ("length", "penalty"), [(0, 0.0), (16_384, 0.0), (18_432, -0.5), (20_480, -1.0), (20_481, -1.0), (22_528, -1.0)]
)
def test_soft_overlong_has_the_values_of_the_paper_and_a_floor(length, penalty):
    assert soft_overlong(length, limit=20_480, cache=4_096) == penalty


@given(st.integers(0, 200), st.integers(1, 100), st.data())
def test_soft_overlong_never_rises_with_length_and_stays_between_minus_one_and_zero(length, limit, data):
    cache = data.draw(st.integers(1, limit))
    shorter, longer = soft_overlong(length, limit, cache), soft_overlong(length + 1, limit, cache)
    assert -1 <= longer <= shorter <= 0
    assert shorter - longer <= 1 / cache + 1e-12
