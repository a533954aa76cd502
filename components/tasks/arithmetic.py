"""Arithmetic with written-out steps (``steps#answer``), in families and difficulty levels.

Every column shows its carry or borrow, also when it is 0, so that the right way and the forgetful way have the same
form and differ in that one digit. A forgetful writer goes on consistently from the digit that it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from components.config.tasks import ArithmeticSource
from components.seeds import derive
from components.tasks.turns import Forget, careful, careless, fresh, prompt_of, spread
from components.types import Prompt

Operation = Callable[[int, int, Forget], str]
"""Two operands and a memory, which is called at every carry or borrow into a next column, to ``steps#answer``."""
NAMES = ("Ann", "Ben", "Eva", "Leo", "Mia", "Tom")
THINGS = ("cups", "eggs", "maps", "nuts", "pens", "toys")


def add(a: int, b: int, forget: Forget) -> str:
    """``47+38``: ``7+8+0=15;4+3+1=8#85``. The last column is written whole: its overflow cannot be forgotten."""
    steps, digits, carry = [], "", 0
    columns = _columns(a, b)
    for x, y in columns[:-1]:
        total = x + y + carry
        steps.append(f"{x}+{y}+{carry}={total}")
        digits = f"{total % 10}{digits}"
        carry = _kept(total // 10, forget)
    x, y = columns[-1]
    steps.append(f"{x}+{y}+{carry}={x + y + carry}")
    return _work(steps, f"{x + y + carry}{digits}")


def subtract(a: int, b: int, forget: Forget) -> str:
    """``52-18``: ``12-8-0=4;5-1-1=3#34``, for ``a >= b``; a column that borrows shows its ten."""
    steps, digits, borrow = [], "", 0
    for x, y in _columns(a, b):
        top = x + 10 if x < y + borrow else x
        steps.append(f"{top}-{y}-{borrow}={top - y - borrow}")
        digits = f"{top - y - borrow}{digits}"
        borrow = _kept(top // 10, forget)
    return _work(steps, digits)


def multiply(a: int, b: int, forget: Forget) -> str:
    """``47*6``: ``7*6+0=42;4*6+4=28#282``, for one digit ``b``."""
    steps, digits, carry = [], "", 0
    *low, high = map(int, reversed(str(a)))
    for x in low:
        total = x * b + carry
        steps.append(f"{x}*{b}+{carry}={total}")
        digits = f"{total % 10}{digits}"
        carry = _kept(total // 10, forget)
    steps.append(f"{high}*{b}+{carry}={high * b + carry}")
    return _work(steps, f"{high * b + carry}{digits}")


def remainder(a: int, b: int, forget: Forget) -> str:
    """``53%7``: ``7*7=49;13-9-0=4;5-4-1=0#4``; the high columns are written too, so a forgotten borrow shows."""
    multiple = a // b * b
    return f"{b}*{a // b}={multiple};{subtract(a, multiple, forget)}"


def larger(a: int, b: int, _forget: Forget) -> str:
    """``max(345,354)``: ``3=3;4<5#354``, from the highest digit to the first difference; nothing to forget."""
    steps = []
    for x, y in reversed(_columns(a, b)):
        steps.append(f"{x}{'=' if x == y else '<' if x < y else '>'}{y}")
        if x != y:
            break
    return _work(steps, str(max(a, b)))


def _columns(a: int, b: int) -> list[tuple[int, int]]:
    """Pairs of digits, lowest first, the shorter number filled up with zeros."""
    width = max(len(str(a)), len(str(b)))
    return [(a // 10**i % 10, b // 10**i % 10) for i in range(width)]


def _kept(carry: int, forget: Forget) -> int:
    return 0 if carry and forget() else carry


def _work(steps: list[str], answer: str) -> str:
    return f"{';'.join(steps)}#{int(answer)}"


@dataclass(frozen=True, slots=True)
class Question:
    """A question as a sentence or as signs, and the operation that answers it."""

    text: str
    operation: Operation
    a: int
    b: int


Draw = Callable[[Random, int], Question]


def addition(rng: Random, level: int) -> Question:
    """Two digits plus one digit, then two plus two, three plus three ..."""
    a, b = _pair(rng, level)
    return Question(f"{a}+{b}=", add, a, b)


def subtraction(rng: Random, level: int) -> Question:
    """As long as the additions; never below zero."""
    a, b = sorted(_pair(rng, level), reverse=True)
    return Question(f"{a}-{b}=", subtract, a, b)


def multiplication(rng: Random, level: int) -> Question:
    """Two and three digits by 2-5, three digits by 6-9, then longer numbers."""
    length, low, high = {1: (2, 2, 5), 2: (3, 2, 5), 3: (3, 6, 9), 4: (4, 2, 9), 5: (5, 2, 9)}[level]
    a, b = _number(rng, length), rng.randint(low, high)
    return Question(f"{a}*{b}=", multiply, a, b)


def remainders(rng: Random, level: int) -> Question:
    """Divisors 2-9, then of two digits, ever larger; the quotient has one digit and the dividend at least two."""
    low, high = {1: (2, 9), 2: (11, 15), 3: (16, 19), 4: (21, 29), 5: (31, 39)}[level]
    divisor = rng.randint(low, high)
    a = rng.randint(max(10, divisor), 10 * divisor - 1)
    return Question(f"{a}%{divisor}=", remainder, a, divisor)


def comparison(rng: Random, level: int) -> Question:
    """Two different numbers of ``level`` digits; every length of their common beginning is equally likely."""
    shared = rng.randrange(level)
    start = str(_number(rng, shared)) if shared else ""
    first = range(0 if shared else 1, 10)
    x, y = rng.sample(first, 2)
    a, b = (int(f"{start}{digit}{_tail(rng, level - shared - 1)}") for digit in (x, y))
    return Question(f"max({a},{b})=", larger, a, b)


def word_problem(rng: Random, level: int) -> Question:
    """A sentence around an addition, a subtraction or a multiplication of the same level."""
    draw, template = rng.choice(TEMPLATES)
    inner = draw(rng, level)
    text = template.format(name=rng.choice(NAMES), thing=rng.choice(THINGS), a=inner.a, b=inner.b)
    return Question(text, inner.operation, inner.a, inner.b)


TEMPLATES: tuple[tuple[Draw, str], ...] = (
    (addition, "{name} has {a} {thing} and gets {b}. How many now?"),
    (subtraction, "{name} has {a} {thing} and gives {b}. How many left?"),
    (multiplication, "{name} has {b} bags of {a} {thing}. How many?"),
)

FAMILIES: dict[str, Draw] = {
    "addition": addition,
    "subtraction": subtraction,
    "multiplication": multiplication,
    "remainder": remainders,
    "comparison": comparison,
    "word_problem": word_problem,
}


def _pair(rng: Random, level: int) -> tuple[int, int]:
    return _number(rng, max(2, level)), _number(rng, level)


def _number(rng: Random, length: int) -> int:
    """A number above 0 with exactly ``length`` digits."""
    return rng.randrange(10 ** (length - 1), 10**length)


def _tail(rng: Random, length: int) -> str:
    return "".join(str(rng.randrange(10)) for _ in range(length))


def generate(source: ArithmeticSource, seed: int) -> list[Prompt]:
    """``source.rows`` distinct prompts; the same seed gives the same prompts.

    More rows extend the list at its end; another ``forget`` changes demonstrations only, another ``mislabelled``
    reference answers only. Comparison of one digit has only 72 questions: the family's other levels fill up.

    Raises:
        InputError: so many distinct problems do not exist.
    """
    return spread(source, partial(_level, source, seed))


def _level(source: ArithmeticSource, seed: int, family: str, level: int, seen: set[str]) -> Iterator[Prompt]:
    """Prompts of one family and level that are not in ``seen`` yet, until there are no new ones."""
    draw = FAMILIES[family]
    rng = Random(derive(seed, source.task, family, level))
    memory = Random(derive(seed, source.task, family, level, "teacher"))
    labels = Random(derive(seed, source.task, family, level, "labels"))
    for question in fresh(lambda: draw(rng, level), lambda question: question.text, seen):
        solution = question.operation(question.a, question.b, careful)
        nothing_to_forget = solution == question.operation(question.a, question.b, careless)
        if nothing_to_forget and rng.random() >= source.carry_free:
            continue
        if source.mislabelled and labels.random() < source.mislabelled:
            solution = question.operation(question.a, question.b, careless)
        taught = question.operation(question.a, question.b, lambda: memory.random() < source.forget)
        yield prompt_of(source, family, level, text=question.text, solution=solution, demonstration=taught)
