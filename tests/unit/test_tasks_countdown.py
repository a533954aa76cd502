"""Reaching a target from some numbers: the problems, the teacher who gives up, and the verifier."""

from __future__ import annotations

import random
import re
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.tasks import CountdownSource
from components.config.verifiers import CountdownVerifier as VerifierSettings
from components.rewards import build_verifier
from components.rewards.countdown import CountdownVerifier, reaches, read_question
from components.tasks.countdown import (
    LARGEST_RESULT,
    OPERATORS,
    Chain,
    Problem,
    chain,
    draw,
    generate,
    search,
    surrender,
)
from components.types import Prompt

RIGHT = Chain(8, (("+", 3), ("*", 2)))
WRONG = Chain(8, (("+", 3), ("-", 2)))
PROBLEM = Problem("[2, 3, 8] = 22", RIGHT, (WRONG,))
VERIFIER = CountdownVerifier("#")


def source(**changes: object) -> CountdownSource:
    return CountdownSource(task="countdown", **{"rows": 600, **changes})


def ask(text: str) -> Prompt:
    return Prompt("id", text, "", "")


@pytest.fixture(scope="module")
def prompts() -> list[Prompt]:
    return generate(source(rows=1200), seed=3)


# The work


def test_worked_search_writes_out_the_branches_that_miss_and_answers_with_the_one_that_does_not():
    assert search(PROBLEM) == "8+3=11,11-2=9x;8+3=11,11*2=22#(8+3)*2"


def test_worked_surrender_answers_with_the_first_branch_although_it_missed():
    assert surrender(PROBLEM) == "8+3=11,11-2=9x#(8+3)-2"


@pytest.mark.parametrize(
    ("steps", "expression", "results"),
    [
        ((), "8", (8,)),
        ((("/", 2),), "8/2", (8, 4)),
        ((("-", 3), ("*", 2), ("+", 4)), "((8-3)*2)+4", (8, 5, 10, 14)),
    ],
)
def test_worked_chains(steps, expression, results):
    assert (Chain(8, steps).expression, Chain(8, steps).results) == (expression, results)


# The problems


@pytest.mark.parametrize("family", OPERATORS)
@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_every_number_on_the_way_is_whole_positive_and_bounded(family, level):
    rng = random.Random(level)
    for _ in range(100):
        problem = draw(rng, family, level)
        numbers, target = read_question(problem.text)
        assert numbers.total() == level + 1
        for one in (problem.right, *problem.wrong):
            assert all(1 <= value <= LARGEST_RESULT for value in one.results)
            assert Counter([one.start, *(number for _, number in one.steps)]) == numbers
            assert {operator for operator, _ in one.steps} <= set(OPERATORS[family])
            assert all(eval(step.replace("=", "==")) for step in one.working.split(","))
            assert (one.value == target) == (one is problem.right)


@given(st.integers(0, 2**31), st.sets(st.integers(1, 40), min_size=2, max_size=5), st.sampled_from(["+-", "+-*/"]))
def test_a_chain_has_the_value_of_its_expression(seed, numbers, operators):
    one = chain(random.Random(seed), sorted(numbers), operators)
    assert eval(one.expression) == one.value


def test_every_solution_is_right_and_every_surrender_wrong(prompts):
    for prompt in prompts:
        assert VERIFIER.accuracy(prompt, prompt.solution) == 1
        assert prompt.solution.endswith(f"#{prompt.answer}")
        gave_up = prompt.demonstration != prompt.solution
        assert VERIFIER.accuracy(prompt, prompt.demonstration) == (0 if gave_up else 1)


@pytest.mark.parametrize(("give_up", "share"), [(0.0, 0.0), (1.0, 0.62), (0.7, 0.44)])
def test_the_teacher_gives_up_as_often_as_the_settings_say_where_a_branch_missed(give_up, share):
    found = generate(source(give_up=give_up, rows=1200), seed=3)
    assert sum(p.demonstration != p.solution for p in found) / len(found) == pytest.approx(share, abs=0.05)


def test_problems_are_distinct_also_with_their_numbers_in_another_order(prompts):
    assert len({(frozenset(n.items()), target) for n, target in (read_question(p.text) for p in prompts)}) == 1200


def test_the_registry_holds_the_verifier_of_the_settings():
    built = build_verifier(VerifierSettings(kind="countdown"))
    assert built.accuracy(ask("[2, 3, 8] = 22"), "so #(8+3)*2") == 1


# The verifier


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("(8+3)*2", True),
        (" ( 8 + 3 ) * 2 ", True),
        ("2*(3+8)", True),
        ("8*2+3*2", False),  # the 2 twice
        ("11*2", False),  # no such number
        ("22", False),
        ("(8+3)-2", False),
        ("(8+3)*2=22", True),
        ("8+3*2", False),
        ("2*(8--3)", False),  # a sign
        ("(8+3)*+2", False),
        ("(8.0+3)*2", False),
        ("(8+3)*2/(3-3)", False),
        ("8/0", False),
        ("(8+3)*2#", False),
        ("", False),
        ("(((", False),
        ("(" * 40 + "8" + ")" * 40, False),
        ("(8+3)\u00d72", True),
        ("(8+3)*\u0662", False),  # another script's digit
        ("2**8", False),
        ("__import__('os')", False),
        ("9" * 5000, False),
    ],
)
def test_worked_answers_to_two_three_and_eight_for_twenty_two(answer, right):
    assert VERIFIER.accuracy(ask("[2, 3, 8] = 22"), f"8+3=11#{answer}") == right


def test_not_every_number_must_be_used_and_a_number_given_twice_may_be_used_twice():
    assert VERIFIER.accuracy(ask("[5, 5, 7] = 10"), "#5+5") == 1
    assert VERIFIER.accuracy(ask("[5, 5, 7] = 15"), "#5+5+5") == 0


def test_fractions_on_the_way_are_exact():
    assert reaches("8/(3-8/3)", Counter([3, 3, 8, 8]), 24)


TAGS = "Return the final answer in <answer> </answer> tags, for example <answer> (1 + 2) / 3 </answer>."


@pytest.mark.parametrize(
    ("text", "numbers", "target"),
    [
        ("Using the numbers [19, 36, 55, 7], create an equation that equals 65.", [19, 36, 55, 7], 65),
        (f"Using the numbers [44, 19, 35], create an equation that equals 98. {TAGS}", [44, 19, 35], 98),
        (f"Create an equation that equals 98 using [44, 19, 35]. {TAGS}", [44, 19, 35], 98),
        ("Target: 24. Numbers: [1, 5, 5, 5].", [1, 5, 5, 5], 24),
        ("Reach 7 from [3, 4]", [3, 4], 7),
        ("[3 4 5] -> 12", [3, 4, 5], 12),
        ("Get 12 with [ 3, 4, 5, ] and nothing else", [3, 4, 5], 12),
        ("[3, 4] = 7, so it must be equal to 7", [3, 4], 7),
        ("[3, 8] = -5", [3, 8], -5),
        ("[3, 8] = \u22125", [3, 8], -5),
    ],
)
def test_other_wordings_are_read_wherever_the_target_stands(text, numbers, target):
    assert read_question(text) == (Counter(numbers), target)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2, 3, 8 = 22",
        "[] = 3",
        "[2, 3]",
        "[2, 3] = 5, and in [4, 5] = 9",  # two lists
        "[2, 3] = 5, not = 6",  # two targets
        "with [2, 3] and 5, in 2 steps",  # which of them?
        "[2, 3] = 5.5",
        "[2, 3] = 1,000",
        "[2, 3] = 4 + 1",
        "[2, 3] = 5/2",
        "[2, 3] = \u0665",  # another script's digit
        "[2.5, 3] = 5",
    ],
)
def test_a_question_without_numbers_or_one_clear_target_can_have_no_right_answer(text):
    with pytest.raises(ValueError, match="no numbers in brackets with one target"):
        VERIFIER.accuracy(ask(text), "#2+3")


@given(st.text(alphabet="0123456789[]=-,. /equals", max_size=60))
def test_any_text_is_read_or_refused_and_no_number_is_made_up(text):
    try:
        numbers, target = read_question(text)
    except ValueError:
        return
    assert {*numbers, abs(target)} <= {int(digits) for digits in re.findall(r"[0-9]+", text)}


def test_a_text_without_an_answer_is_wrong():
    assert VERIFIER.accuracy(ask("[2, 3, 8] = 22"), "(8+3)*2") == 0


@st.composite
def expressions(draw, depth: int = 3):
    """Text, the numbers in it and its value; None where something is divided by zero."""
    if depth == 0 or draw(st.booleans()):
        number = draw(st.integers(0, 9))
        return str(number), [number], Fraction(number)
    left, right, operator = draw(expressions(depth - 1)), draw(expressions(depth - 1)), draw(st.sampled_from("+-*/"))
    value = None
    if left[2] is not None and right[2] is not None and (operator != "/" or right[2] != 0):
        value = {
            "+": lambda: left[2] + right[2],
            "-": lambda: left[2] - right[2],
            "*": lambda: left[2] * right[2],
            "/": lambda: left[2] / right[2],
        }[operator]()
    return f"({left[0]}{operator}{right[0]})", left[1] + right[1], value


@given(expressions(), st.integers(0, 20))
def test_an_expression_reaches_its_own_value_with_its_own_numbers_and_nothing_else(expression, other):
    text, used, value = expression
    numbers = Counter(used)
    whole = value is not None and value.denominator == 1
    assert not whole or reaches(text, numbers, int(value)) == (len(text) <= 64)
    assert value == other or not reaches(text, numbers, other)
    fewer = numbers - Counter(used[:1])
    assert not whole or not reaches(text, fewer, int(value))


@given(st.text(alphabet="0123456789+-*/() .#x", max_size=80))
def test_no_text_makes_the_verifier_fail(text):
    assert VERIFIER.accuracy(ask("[2, 3, 8] = 22"), f"#{text}") in (0.0, 1.0)


def test_the_marker_is_the_settings():
    assert CountdownVerifier("answer:").accuracy(ask("[2, 3] = 5"), "the answer: 2+3") == 1


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("3*8-2 = 22", True),
        ("3*8-2=22.", True),
        ("3×8−2", True),
        ("3·8–2", True),
        ("3*8-2.", True),
        ("3*8-2 = 23", False),
        ("22 = 22", False),
        ("3*8-3 = 22", False),
        ("3*8-2 = 22 = 22", False),
        ("3*8-2.5", False),
        ("22", False),
    ],
)
def test_dress_of_an_expression_does_not_count_and_hides_nothing(answer, right):
    assert VERIFIER.accuracy(ask("[3, 8, 2] = 22"), f"# {answer}") == right


def test_the_reference_is_right_in_every_form_and_none_is_named_where_it_misses():
    prompt = Prompt("p", "[3, 8, 2] = 22", "3*8-2", "")
    forms = VERIFIER.equivalents(prompt)
    assert len(forms) == 5
    assert {name: VERIFIER.accuracy(prompt, text) for name, text in forms.items()} == dict.fromkeys(forms, 1.0)
    assert VERIFIER.equivalents(Prompt("p", "[3, 8, 2] = 22", "3*8-3", "")) == {}
    assert VERIFIER.equivalents(Prompt("p", "?", "3*8-2", "")) == {}
