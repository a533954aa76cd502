"""Problems for a policy with a calculator, and the teacher who would rather guess."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.tasks import CalculatorSource
from components.tasks.calculator import PHRASES, WORDINGS, Memory, Problem, draw, generate, work
from components.tools.calculator import Calculator, answer
from components.tools.expressions import MAX_CHARS, evaluate
from components.types import Prompt

PROBLEM = Problem("", 47, (("+", 38), ("*", 12)))


def source(**changes: object) -> CalculatorSource:
    return CalculatorSource(task="calculator", **{"rows": 600, **changes})


@pytest.fixture(scope="module")
def prompts() -> list[Prompt]:
    return generate(source(rows=1200), seed=3)


def final(text: str) -> str:
    return text.rpartition("#")[2]


# The work


def test_worked_solution_is_a_call_a_step_each_with_the_result_of_the_one_before():
    assert work(PROBLEM, lambda _: None) == "<<47+38=85>>;<<85*12=1020>>#1020"


@pytest.mark.parametrize(
    ("guesses", "text"),
    [
        (["95", None], "47+38=95;<<95*12=1140>>#1140"),
        ([None, "1030"], "<<47+38=85>>;85*12=1030#1030"),
        (["95", "1150"], "47+38=95;95*12=1150#1150"),
    ],
)
def test_a_guess_is_written_without_a_call_and_the_next_step_goes_on_from_it(guesses, text):
    waiting = iter(guesses)
    assert work(PROBLEM, lambda _: next(waiting)) == text


@given(st.integers(0, 2**31), st.sampled_from(["85*12", "7+1", "10/4", "51/9", "5-9", "100000*9", "9-9"]))
def test_a_guess_is_the_result_with_one_digit_wrong(seed, expression):
    right, guessed = answer(expression), Memory(random.Random(seed), 1.0)(expression)
    assert len(guessed) == len(right)
    assert sum(a != b for a, b in zip(guessed, right, strict=True)) == 1
    assert evaluate(guessed) != evaluate(right)
    assert len(str(abs(int(evaluate(guessed))))) == len(str(abs(int(evaluate(right)))))  # no leading zero


@pytest.mark.parametrize("guess", [0.0, 0.3, 1.0])
def test_guesses_are_as_frequent_as_the_settings_say(guess):
    memory = Memory(random.Random(0), guess)
    share = sum(memory("85*12") is not None for _ in range(2000)) / 2000
    assert share == pytest.approx(guess, abs=0.03)


def test_what_the_teacher_writes_is_what_policy_and_calculator_would_write_together(prompts):
    tool = Calculator()
    for prompt in prompts[:300]:
        text = ""
        for segment in tool.segments(prompt.demonstration):
            if not segment.sampled:
                assert tool.observe(text) == segment.text
            text += segment.text
        assert text == prompt.demonstration


# The problems


def value_of(prompt: Prompt) -> int:
    """The answer by Python's own arithmetic, read from the question's text."""
    if prompt.family == "formula":
        return int(eval(prompt.text.removesuffix("=").replace("/", "//")))
    start, *phrases = prompt.text.removesuffix(". How many?").split(", ")
    value = int(re.findall(r"\d+", start)[0])
    for phrase in phrases:
        (b,) = map(int, re.findall(r"\d+", phrase))
        (operator,) = (o for o, words in PHRASES.items() if phrase == words.format(b))
        value = {"+": value + b, "-": value - b, "*": value * b, "/": value // b}[operator]
    return value


def test_every_answer_and_solution_is_right(prompts):
    assert all(p.answer == final(p.solution) == str(value_of(p)) for p in prompts)


def test_without_a_guess_the_demonstration_is_the_solution_and_with_one_it_is_mostly_wrong(prompts):
    careful_ones = [p for p in prompts if p.demonstration == p.solution]
    guessed = [p for p in prompts if p.demonstration != p.solution]
    assert 0.2 < len(careful_ones) / len(prompts) < 0.35  # (1/2 + 1/4 + 1/8) / 3
    assert sum(final(p.demonstration) == p.answer for p in guessed) / len(guessed) < 0.02


@pytest.mark.parametrize("family", WORDINGS)
@pytest.mark.parametrize("level", [1, 2, 3, 4, 5])
def test_levels_are_steps_and_every_number_stays_whole_positive_and_short(family, level):
    rng = random.Random(level)
    for _ in range(100):
        problem = draw(rng, family, level)
        calls = re.findall(r"<<([^=]*)=([^>]*)>>", work(problem, lambda _: None))
        assert len(calls) == level
        assert all(result.isdigit() and 1 <= int(result) < 10**6 for _, result in calls)
        assert all(len(expression) <= MAX_CHARS for expression, _ in calls)
