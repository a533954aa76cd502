"""A chain of operations, one a level, as a story or as a formula. No result on the way is below 1 or has a fraction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from components.tasks.arithmetic.families import NAMES, THINGS
from components.tasks.countdown.problems import Chain, after

Step = tuple[str, int]

PHRASES = {
    "+": "gets {} more",
    "-": "loses {}",
    "*": "then has {} times as many",
    "/": "then keeps one in {}",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A question, and the numbers behind it: where to start, and what to do one after the other."""

    text: str
    start: int
    steps: tuple[Step, ...]


def draw(rng: Random, family: str, level: int) -> Problem:
    """A problem of ``level`` steps."""
    start = value = rng.randint(20, 499)
    steps: list[Step] = []
    for _ in range(level):
        step = _step(rng, value)
        value = after(value, *step)
        steps.append(step)
    return Problem(WORDINGS[family](rng, start, steps), start, tuple(steps))


def story(rng: Random, start: int, steps: list[Step]) -> str:
    """``Ann has 47 cups, gets 38 more, then has 12 times as many. How many?``"""
    phrases = [PHRASES[operator].format(operand) for operator, operand in steps]
    return f"{rng.choice(NAMES)} has {start} {rng.choice(THINGS)}, {', '.join(phrases)}. How many?"


def formula(_rng: Random, start: int, steps: list[Step]) -> str:
    """``(47+38)*12=``"""
    return f"{Chain(start, tuple(steps)).expression}="


WORDINGS: dict[str, Callable[[Random, int, list[Step]], str]] = {"story": story, "formula": formula}


def _step(rng: Random, value: int) -> Step:
    """An operation that leaves a whole number of at least 1 and at most six digits."""
    divisors = [d for d in range(2, 10) if value % d == 0 and value > d]
    choices: list[Step] = [("+", rng.randint(20, 499))]
    if value > 20:
        choices.append(("-", rng.randint(10, min(499, value - 1))))
    if value < 5000:
        choices.append(("*", rng.randint(3, 29)))
    if divisors:
        choices.append(("/", rng.choice(divisors)))
    return rng.choice(choices)
