"""The grammar of answers, and what `numeric` and `math` make of it: one table of cases a class, and two rates."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.data.likeness import even_answer
from components.rewards.base import Refused
from components.rewards.numeric import NumericVerifier
from components.rewards.symbolic import MathVerifier
from components.types import Prompt
from tests.answers.kinds import KINDS, NUMERIC
from tests.answers.measure import cases, verdict
from tests.answers.styles import BOXED, MARKED

VERIFIERS = {
    "numeric": (NumericVerifier("####", 1e-6), NUMERIC, MARKED),
    "math": (MathVerifier("####", 6, "strip", 400), KINDS, MARKED),
    "math, boxed": (MathVerifier(None, 6, "strip", 400), KINDS, BOXED),
}
CHOSEN, HELD_BACK = 1, 2
"""Seeds. The grammar was chosen on the first; the rates of the second are those of values that it was not chosen on."""


@pytest.mark.parametrize("seed", [CHOSEN, HELD_BACK], ids=["chosen", "held back"])
@pytest.mark.parametrize("name", VERIFIERS)
def test_right_answers_of_every_kind_in_every_style_are_accepted_and_near_misses_are_not(name, seed):
    verifier, kinds, styles = VERIFIERS[name]
    counts, missed = Counter[tuple[bool, float | None]](), Counter[tuple[str, str]]()
    for case in cases(kinds, styles, seed, each=3):
        found = verdict(verifier, case.reference, case.text)
        counts[case.right, found] += 1
        if case.right is not (found == 1.0):
            missed[case.kind, case.answer] += 1
    right, wrong = (sum(n for (kind, _), n in counts.items() if kind is side) for side in (True, False))
    print(f"\n{name}: {counts[True, 1.0]} of {right} right accepted, {counts[False, 1.0]} of {wrong} wrong, {counts}")
    assert min(right, wrong) > 600
    assert counts[True, 1.0] >= 0.99 * right, missed
    assert counts[False, 1.0] <= 0.001 * wrong, missed


def both(reference: str, answer: str) -> tuple[float | None, float | None]:
    """The verdicts of `numeric` and `math`; None: unscorable."""
    numeric, math = VERIFIERS["numeric"][0], VERIFIERS["math"][0]
    return verdict(numeric, reference, f"#### {answer}"), verdict(math, reference, f"#### {answer}")


@pytest.mark.parametrize(
    "answer",
    ["42", "42 apples.", "**42**", "She has **42** apples.", "x = 42", "6*7 = 42", "The answer is $42$.",
     r"\(42\) apples",
     "Rs. 42", "42 (approximately)", "42 is the answer", "42\n\nThat is all, not 41.", r"\text{Answer: }42", "=42",
     r"{\bf 42}", r"\color{red}{42}", "42 km/h", "P(A) = 42", r"\angle ABC = 42^\circ",
     "the total cost is $42", "84/2"],
)  # fmt: skip
def test_what_may_stand_around_a_number(answer):
    assert both("42", answer) == (1.0, 1.0)


@pytest.mark.parametrize(
    "answer",
    [r"40\,2", r"40 \quad 2", "40 1 1", "43=42", "±42", "x <= 42", "not 42", "!= 42", "42x", "42i", "x^2+42", "-42",
     "half of 42", "42 dozen", "42 squared", "42 or more", "42, not 41", "42 - 1", "40-42", "42:00", "x + 1 = 42",
     "42 is wrong", "so -42", "no. 42", "42?", "42!", "~~42~~", "1,000,042", "42 42", "42 and a half", "42=43=42"],
)  # fmt: skip
def test_what_makes_something_else_of_it(answer):
    assert both("42", answer) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("reference", "answer", "numeric", "math"),
    [
        ("42", "Natalia sold 42 clips", None, None),  # a word that may be anything stands before
        ("41", "Natalia sold 42 clips", 0.0, 0.0),
        ("3.25", "3,25", None, None),  # the decimal comma, or two numbers
        ("3.26", "3,25", 0.0, 0.0),
        ("1234", "1.234", None, None),
        ("1.234", "1.234", 1.0, 1.0),
        ("12", "12,000", 0.0, 0.0),
        ("5", "5m", 1.0, None),  # a unit, or a letter
        ("5", "5 m", 1.0, 1.0),
        (r"2516_8", "2516", None, None),  # the base goes without saying
        (r"2516_8", "1358", None, 0.0),
        (r"2516_8", "2516_9", None, 0.0),
        (r"\{1,234\}", "1,234", None, None),
        ("42", "42_8", None, None),
        ("10:30 a.m.", "10:30", None, None),
        ("10:30 a.m.", "10:30 PM", None, 0.0),
    ],
)
def test_what_may_be_read_in_two_ways_is_unscorable_where_one_of_them_is_right(reference, answer, numeric, math):
    assert both(reference, answer) == (numeric, math)


@pytest.mark.parametrize(
    "reference",
    [r"70\sqrt{2}", "k+5", "x <= 5", "3 or 4", "5, 6", "(1, 2)", "±5", "5!", "2^5", "2516_8", "10:30",
     "about ten", "", "3,25",
     "half of 8", "not 5", "5 + 5", "1/0", "2 hours 5 minutes", "9" * 5000, "4２", "4\u200b2", "Natalia sold 42"],
)  # fmt: skip
def test_numeric_refuses_a_reference_that_is_not_one_number(reference):
    with pytest.raises(Refused, match="the reference answer"):
        VERIFIERS["numeric"][0].accuracy(Prompt("p", "?", reference, ""), "#### 5")


@pytest.mark.parametrize(
    ("reference", "value", "first"),
    [(r"12\frac{3}{5}", "12.6", "12"), (r"\frac43", "4/3", "43"), (r"3,\!250", "3250", "3"), (r"1\,000", "1000", "1")],
)
def test_a_reference_is_read_whole_and_not_up_to_its_first_number(reference, value, first):
    assert both(reference, value) == both(reference, reference) == (1.0, 1.0)
    assert both(reference, first) == (0.0, 0.0)


@pytest.mark.parametrize("value", ["17/2", "35/2", "5"])
def test_a_whole_number_before_an_improper_fraction_is_neither_sum_nor_product(value):
    assert both(value, r"5\frac72") == both(value, "5 7/2") == (0.0, 0.0)


@pytest.mark.parametrize(
    "reference", ["", r"\frac{", "1" * 500, "1 2", "43=", "1/0", r"\int_0^1 x\,dx", r"\def\a{}", "()"]
)
def test_math_refuses_a_reference_that_is_not_one_answer(reference):
    with pytest.raises(Refused, match="the reference answer"):
        VERIFIERS["math"][0].accuracy(Prompt("p", "?", reference, ""), "#### 5")


@pytest.mark.parametrize(
    ("texts", "accuracy"),
    [
        (["48 and 24 make 42 in all.", "so it is 6 * 7 = 42 dollars", "#### 42 km", "It is 42.\n\nThank you!"], 1.0),
        ([r"Therefore $x = \textbf{42}$."], 1.0),
        (["it is not 42", "which is half of 42", "so x <= 42", "that makes 42 dozen", "so x^2+42", "nothing"], 0.0),
        (["42, or rather 43"], 0.0),
    ],
)
def test_without_a_marker_numeric_reads_the_last_number_with_what_stands_around_it(texts, accuracy):
    assert {text: verdict(NumericVerifier(None, 1e-6), "42", text) for text in texts} == dict.fromkeys(texts, accuracy)


SAME = {
    r"\frac{\sqrt{2}}{2}": [r"\frac{1}{\sqrt2}", "sqrt(2)/2", "2^{-1/2}", r"\sqrt{\frac12}", "0.7071068"],
    r"2 \pm \sqrt{3}": [r"2+\sqrt3, 2-\sqrt3", r"\{2-\sqrt{3}, 2+\sqrt{3}\}", r"x=2+\sqrt3 \text{ or } x=2-\sqrt3"],
    r"\log_2 3": [r"\frac{\ln 3}{\ln 2}", r"\log_{2}{3}"],
    r"2\sin x\cos x": [r"\sin 2x", r"\sin(2x)"],
    r"\begin{pmatrix}1&2\\3&4\end{pmatrix}": [r"\begin{bmatrix}1 & 2\\ 3 & 4\end{bmatrix}"],
    r"\text{(A)}": ["A", "(A)", r"\textbf{A}", "The answer is A"],
    r"x \le 3": [r"3 \ge x", r"(-\infty, 3]"],
    r"|x-2|": ["|2-x|", r"\sqrt{(x-2)^2}"],
    r"0.\overline{3}": [r"\frac13", "0.333333"],
    r"x^2+y^2=4": ["4 = x^2+y^2", "2x^2+2y^2=8"],
    r"6 \text{ cm}^2": ["6", "6 cm^2", "6 square centimeters"],
    "3+4i": ["4i+3"],
    r"\infty": ["∞", "infinity"],
    "5!": ["120"],
    r"\sqrt[3]{-8}": ["-2"],
    r"e^{2x}": [r"\exp(2x)", "(e^x)^2"],
}
OTHER = {
    r"|x-2|": ["x-2", "2-x"],
    "x": [r"\sqrt{x^2}", "|x|", "X"],
    r"\log_2 3": [r"\log_3 2", r"\log 3"],
    r"\sin^2 x": [r"\sin x^2", r"\sin x"],
    r"3+4i": ["3-4i", "7"],
    r"x^2+y^2=4": ["x^2+y^2=2", "x^2+y^2>4", "x^2+y^2"],
    "5,7": ["5", "12", "57", "5 7"],
    r"10^{100}": [r"10^{99}"],
    r"\frac{1}{x^2+1}": ["1/x^2+1"],
    "0.0000001": ["0.0000002", "0"],
    r"(1,2)": [r"\{1,2\}", "[1,2]", "(2,1)"],
    r"\text{even}": ["odd", "neven", "not even"],
    r"e^{\pi\sqrt{163}}": ["262537412640768744"],
}


@pytest.mark.parametrize(("table", "expected"), [(SAME, 1.0), (OTHER, 0.0)], ids=["same", "other"])
def test_expressions_are_compared_by_what_they_are_worth(table, expected):
    found = {(one, two): both(one, two)[1] for one, others in table.items() for two in others}
    assert found == dict.fromkeys(found, expected)


@given(st.text(r"0123456789x^-+!/.,$({})\ \n²km_=<[]|&sqrt~*'", max_size=40) | st.text(max_size=40))
def test_no_text_raises_anything_but_a_refusal(text):
    for reference in ("25", "25 km"):
        assert {*both(reference, text)} <= {0.0, 1.0, None}
    assert verdict(VERIFIERS["math, boxed"][0], "x+1", rf"\boxed{{{text}}}") in (0.0, 1.0, None)


@given(
    st.lists(
        st.sampled_from(
            [*"0123456789e!^-+/%°(){}x,.=", r"\frac", r"\binom", r"\sqrt", r"\emptyset", "∅", r"\pi", r"\{", r"\}",
             "1e5", "1e4000", r"\log", r"\overline", "|", " ", " in base ", "or", r"\pm", r"\infty", "π", "²", "min(",
             "gcd("]
        ),
        max_size=9,
    ).map("".join)
)  # fmt: skip
def test_no_formula_raises_anything_but_a_refusal(text):
    assert {*both("25", text)} <= {0.0, 1.0, None}
    even_answer(text)


@pytest.mark.parametrize(
    "text",
    [
        "∅ 0", r"\emptyset 0", r"\{\} 3", r"\frac1e5", r"\binom 1e5 2", "1e4000*10^4000", r"\binom{5}{\pi}",
        r"\binom{5/2}{2}",
    ],
)  # fmt: skip
def test_what_is_no_answer_is_wrong_and_not_unscorable(text):
    assert both("42", text) == (0.0, 0.0)
    even_answer(text)


def test_a_reference_of_thousands_of_digits_has_no_other_ways_of_writing():
    assert VERIFIERS["numeric"][0].equivalents(Prompt("p", "?", "1e4000*10^4000", "")) == {}


BOMBS = [
    "9^{9^{9^{9}}}", r"\sin(10^{1000000})", "((((9!)!)!)!)!", "2000!" + "*2000!" * 40, r"\binom{20000}{10000}",
    "x^{x^{x^{x}}}",
    "((((x+1)^{99})^{99})^{99})^{99}", "1e4000^{4000}", r"\frac{1}{" * 60 + "1" + "}" * 60, r"\frac" * 60,
    "(" * 150 + ")" * 150,
    "xyzabcdefg" * 30, "1/" * 190 + "1", "!" * 300, "-" * 300, "x^" * 190 + "x",
]  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb[:20])
@pytest.mark.timeout(20)
def test_a_bomb_is_wrong_and_no_exception(bomb):
    assert both("42", bomb) == (0.0, 0.0)
    assert both("42", bomb + "+x")[1] == verdict(VERIFIERS["math"][0], r"\frac{x+1}{2}", f"#### {bomb}") == 0.0
