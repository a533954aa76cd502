"""Arithmetic with written-out steps: the solutions are right, and the forgetful teacher is wrong in one way only."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.tasks import ArithmeticSource
from components.content_id import content_id, normalise
from components.errors import InputError
from components.tasks.arithmetic import FAMILIES, add, generate, larger, multiply, remainder, subtract
from components.tasks.turns import careful, careless
from components.types import Prompt

numbers = st.integers(0, 99_999)
digits = st.integers(1, 9)


def answer(work: str) -> int:
    return int(work.rpartition("#")[2])


@pytest.mark.parametrize(
    ("operation", "a", "b", "right", "forgotten"),
    [
        (add, 737, 361, "7+1+0=8;3+6+0=9;7+3+0=10#1098", "7+1+0=8;3+6+0=9;7+3+0=10#1098"),
        (add, 47, 38, "7+8+0=15;4+3+1=8#85", "7+8+0=15;4+3+0=7#75"),
        (subtract, 52, 18, "12-8-0=4;5-1-1=3#34", "12-8-0=4;5-1-0=4#44"),
        (subtract, 502, 18, "12-8-0=4;10-1-1=8;5-0-1=4#484", "12-8-0=4;10-1-0=9;5-0-0=5#594"),
        (multiply, 47, 6, "7*6+0=42;4*6+4=28#282", "7*6+0=42;4*6+0=24#242"),
        (remainder, 53, 7, "7*7=49;13-9-0=4;5-4-1=0#4", "7*7=49;13-9-0=4;5-4-0=1#14"),
        (larger, 345, 354, "3=3;4<5#354", "3=3;4<5#354"),
    ],
)
def test_steps_show_every_carry_and_forgetting_drops_it_and_goes_on(operation, a, b, right, forgotten):
    assert operation(a, b, careful) == right
    assert operation(a, b, careless) == forgotten


@given(numbers, numbers, digits)
def test_careful_work_ends_in_the_right_answer(a, b, digit):
    high, low = max(a, b), min(a, b)
    assert answer(add(a, b, careful)) == a + b
    assert answer(subtract(high, low, careful)) == high - low
    assert answer(multiply(a, digit, careful)) == a * digit
    assert answer(remainder(a, digit, careful)) == a % digit
    assert answer(larger(a, b, careful)) == high


@given(numbers, numbers, st.integers(0, 2**20))
def test_forgetful_work_is_right_exactly_when_it_writes_the_right_steps(a, b, seed):
    memory = random.Random(seed)
    high, low = max(a, b), min(a, b)
    for operation, right in ((add, a + b), (subtract, high - low)):
        work = operation(high, low, lambda: memory.random() < 0.5)
        assert (answer(work) == right) == (work == operation(high, low, careful))


def evaluate(prompt: Prompt) -> int:
    """The answer by Python's own arithmetic, read from the question's text."""
    found = [int(n) for n in re.findall(r"\d+", prompt.text)]
    a, b = found
    if "max" in prompt.text:
        return max(a, b)
    if "%" in prompt.text:
        return a % b
    if "*" in prompt.text or "bags" in prompt.text:
        return a * b
    if "-" in prompt.text or "left" in prompt.text:
        return a - b
    return a + b


@pytest.fixture(scope="module")
def prompts() -> list[Prompt]:
    return generate(ArithmeticSource(rows=6000), seed=3)


def test_every_generated_answer_and_solution_is_right(prompts):
    assert all(int(p.answer) == evaluate(p) == answer(p.solution) for p in prompts)


def test_families_are_even_and_small_levels_are_filled_up_by_the_familys_others():
    found = generate(ArithmeticSource(rows=2000, families=("addition", "comparison"), carry_free=1), seed=0)
    sizes = Counter((p.family, p.difficulty) for p in found)
    assert [sizes["addition", level] for level in (1, 2, 3)] == [334, 333, 333]
    assert [sizes["comparison", level] for level in (1, 2, 3)] == [72, 464, 464]  # 72: pairs of different digits 1-9


def test_a_family_that_has_run_out_is_filled_up_by_the_others():
    found = generate(ArithmeticSource(rows=500, families=("addition", "comparison"), levels=1, carry_free=1), seed=0)
    assert Counter(p.family for p in found) == {"comparison": 72, "addition": 428}


def test_level_three_stays_within_three_digit_operands_and_short_solutions(prompts):
    hardest = [p for p in prompts if p.difficulty == 3]
    assert max(len(n) for p in hardest for n in re.findall(r"\d+", p.text)) == 3
    assert max(len(p.solution) for p in hardest) <= 36
    assert max(len(p.demonstration) for p in hardest) <= 38


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("level", [1, 2, 3, 4, 5])
def test_every_family_has_every_level(family, level):
    rng = random.Random(level)
    for _ in range(50):
        question = FAMILIES[family](rng, level)
        work = question.operation(question.a, question.b, careful)
        assert answer(work) >= 0
        assert str(question.a) in question.text and str(question.b) in question.text


def test_problems_with_nothing_to_forget_are_thinned_out():
    def share(carry_free: float) -> float:
        found = generate(ArithmeticSource(rows=600, families=("addition",), forget=1, carry_free=carry_free), seed=0)
        return sum(p.demonstration == p.solution for p in found) / len(found)

    assert share(0) == 0
    assert 0 < share(0.4) < share(1)


def test_asking_for_more_than_exists_is_an_error_that_says_how_many_there_are():
    source = ArithmeticSource(rows=1000, families=("comparison",), levels=1, carry_free=1)
    with pytest.raises(InputError, match="only 72 distinct problems exist, 1000 are needed"):
        generate(source, seed=0)


def test_normalised_text_ignores_case_white_space_and_compatibility_forms():
    assert normalise(" Two\tＡ \n") == normalise("two a")
    assert content_id("x", "a") != content_id("y", "a")


def test_tasks_do_not_import_torch():
    code = "import sys, components.tasks; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
