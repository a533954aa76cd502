"""How each family draws a question of a level. Levels 1 to 5; the numbers get longer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from components.tasks.arithmetic.columns import Operation, add, larger, multiply, remainder, subtract


@dataclass(frozen=True, slots=True)
class Question:
    """A question as a sentence or as signs, and the operation that answers it."""

    text: str
    operation: Operation
    a: int
    b: int


Draw = Callable[[Random, int], Question]

NAMES = ("Ann", "Ben", "Eva", "Leo", "Mia", "Tom")
THINGS = ("cups", "eggs", "maps", "nuts", "pens", "toys")


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
