"""What counts as right, and what length costs."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config import reward
from components.config.base import Section
from components.rewards import VERIFIERS, build_verifier
from components.rewards.base import Refused
from components.rewards.exact import ExactVerifier
from components.rewards.numeric import NumericVerifier, numbers
from components.rewards.shaping import soft_overlong
from components.types import Prompt


def prompt(answer: str) -> Prompt:
    return Prompt(id="p", text="?", answer=answer, solution="")


@pytest.mark.parametrize(
    ("text", "accuracy"),
    [
        ("6*7=42#42", 1.0),
        ("6*7=42# 42 \n", 1.0),
        ("#41#42", 1.0),  # the last marker counts
        ("#42#41", 0.0),
        ("#42.0", 0.0),
        ("42", 0.0),  # no marker: no answer, which is wrong
        ("#", 0.0),
        ("", 0.0),
    ],
)
def test_exact_compares_what_follows_the_last_marker(text, accuracy):
    assert ExactVerifier(marker="#").accuracy(prompt("42"), text) == accuracy


def test_an_empty_marker_takes_the_whole_text():
    assert ExactVerifier(marker="").accuracy(prompt("forty-two"), " forty-two ") == 1.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("72", 72),
        ("-3", -3),
        ("\u22123", -3),
        ("+3", 3),
        ("1,234,567", 1_234_567),
        ("$1,234.50", Fraction(2469, 2)),
        ("-$5", -5),
        ("$-5", -5),
        ("$ 5", 5),
        ("50%", 50),
        ("12.", 12),
        (".5", Fraction(1, 2)),
        ("1/2", Fraction(1, 2)),
        ("-3 / 4", Fraction(-3, 4)),
        ("6.02e3", 6020),
        ("1E-2", Fraction(1, 100)),
        ("10-3", 3),  # an operator, not a sign: the last number is 3
        ("(2)-3", 3),
    ],
)
def test_numbers_are_read_however_they_are_written(text, value):
    assert numbers(text)[-1] == value


@pytest.mark.parametrize("text", ["", "none", "-", "$", "1/0", "e", "..."])
def test_what_is_no_number_is_not_read_as_one(text):
    assert numbers(text) == []


@given(st.integers(-(10**30), 10**30))
def test_integers_of_any_length_are_read_exactly_with_and_without_commas(number):
    assert numbers(str(number)) == numbers(f"{number:,}") == [number]


@given(st.text())
def test_no_text_makes_the_reader_fail(text):
    assert all(isinstance(number, Fraction) for number in numbers(text))


@pytest.mark.parametrize(
    ("text", "accuracy"),
    [
        ("48/2 = 24\n#### 72", 1.0),
        ("#### 72.", 1.0),
        ("#### $72.00", 1.0),
        ("#### 72 clips, not 70", 0.0),
        ("#### 70 72 74", 0.0),
        ("#### 72 clips (72.0)", 1.0),
        ("#### 72\nThat is 2 more than 70.", 1.0),
        ("#### 70\n#### 72", 1.0),
        ("#### 72.0001", 0.0),
        ("#### -72", 0.0),
        ("72", 0.0),
        ("#### clips", 0.0),
        ("", 0.0),
        ("#### " + "9" * 10_000, 0.0),
    ],
)
def test_numeric_compares_the_number_after_the_last_marker(text, accuracy):
    assert NumericVerifier(marker="####", tolerance=1e-6).accuracy(prompt("72"), text) == accuracy


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
    ("reference", "answer", "accuracy"),
    [
        ("25", "x^25", 0.0),
        ("5", "x^25", 0.0),
        ("2", "cm^2", 0.0),
        ("5", "5 cm^2", 1.0),
        ("5", r"5 \text{m}^{2}", 1.0),
        ("5", "\u20135", 0.0),
        ("5", "\u20145", 0.0),
        ("5", "\u20105", 0.0),
        ("-5", "\u20135", 1.0),
        ("-5", "\u20125", 1.0),
        ("5", "-(5)", 0.0),
        ("5", "- (5)", 0.0),
        ("-5", "\u2212(5)", 1.0),
        ("5", r"-\$5", 0.0),
        ("5", r"-\boxed{5}", 0.0),
        ("5", "-(-5)", 1.0),
        ("5", "5!", 0.0),
        ("5", "(5)!", 0.0),
        ("5", "5²", 0.0),
        ("5", r"\sqrt{5}", 0.0),
        ("5", "√5", 0.0),
        ("5", "1/0 5", 0.0),
        ("5", "5+5", 0.0),
        ("5", "5 5", 0.0),
        ("5", "5*5", 0.0),
        ("5", "5(5)", 0.0),
        ("5", "*5*.", 1.0),
        ("5", r"\frac{5}{5}", 0.0),
        ("1/2", r"\frac{1}{2}", 1.0),
        ("-1/2", r"-\frac{1}{2}", 1.0),
        ("3.5", r"3\frac{1}{2}", 1.0),
        (r"\frac{1}{2}", "0.5", 1.0),
        ("5", "5 million", 0.0),
        ("5", r"5\text{ million}", 0.0),
        ("5", "5k", 0.0),
        ("5000000", "5 million", 1.0),
        ("5 million", "5,000,000", 1.0),
        ("5000", "$5k", 1.0),
        ("1000", "1{,}000", 1.0),
    ],
)
def test_what_stands_around_a_number_is_part_of_it(reference, answer, accuracy):
    assert NumericVerifier("####", 1e-6).accuracy(prompt(reference), f"#### {answer}") == accuracy


def test_a_reference_that_is_not_a_number_is_refused():
    with pytest.raises(Refused, match="the reference answer 'blue'"):
        NumericVerifier(marker=None, tolerance=0).accuracy(prompt("blue"), "3")


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
    ("length", "penalty"),
    [(0, 0.0), (16_384, 0.0), (18_432, -0.5), (20_480, -1.0), (20_481, -1.0), (22_528, -1.0)],
)
def test_soft_overlong_has_the_values_of_the_paper_and_a_floor(length, penalty):
    assert soft_overlong(length, limit=20_480, cache=4_096) == penalty


@given(st.integers(0, 200), st.integers(1, 100), st.data())
def test_soft_overlong_never_rises_with_length_and_stays_between_minus_one_and_zero(length, limit, data):
    cache = data.draw(st.integers(1, limit))
    shorter, longer = soft_overlong(length, limit, cache), soft_overlong(length + 1, limit, cache)
    assert -1 <= longer <= shorter <= 0
    assert shorter - longer <= 1 / cache + 1e-12
