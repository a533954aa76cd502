"""Problems of several steps for a policy with a calculator (`components.tools`), and a teacher too proud to use it.

A problem is a chain of operations, one a level, as a story or as a formula. No result on the way is below 1 or has a
fraction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from components.config.tasks import CalculatorSource
from components.seeds import derive
from components.tasks.arithmetic import NAMES, THINGS
from components.tasks.countdown import Chain, after
from components.tasks.turns import fresh, prompt_of, spread
from components.tools.calculator import annotation, answer
from components.types import Prompt

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


def generate(source: CalculatorSource, seed: int) -> list[Prompt]:
    """``source.rows`` distinct prompts; the same seed gives the same prompts.

    More rows extend the list at its end; another ``guess`` changes demonstrations only.

    Raises:
        InputError: so many distinct problems do not exist.
    """
    return spread(source, partial(_level, source, seed))


def work(problem: Problem, guess: Callable[[str], str | None]) -> str:
    """``<<47+38=85>>;<<85*12=1020>>#1020``: a call a step, each with the result of the one before, then the answer.

    ``guess`` is called at every step for a result from memory. Where it has one, that is written without a call
    (``47+38=95;``), and the steps after it go on from there.
    """
    value, steps = str(problem.start), []
    for operator, operand in problem.steps:
        expression = f"{value}{operator}{operand}"
        guessed = guess(expression)
        steps.append(annotation(expression) if guessed is None else f"{expression}={guessed}")
        value = answer(expression) if guessed is None else guessed
    return f"{';'.join(steps)}#{value}"


class Memory:
    """A teacher who would rather guess: with probability ``guess`` a result with one digit wrong."""

    def __init__(self, rng: Random, guess: float) -> None:
        self._rng, self._guess = rng, guess

    def __call__(self, expression: str) -> str | None:
        # The digit is drawn either way, so that another probability leaves the other draws as they are.
        doubt, place, shift = self._rng.random(), self._rng.random(), self._rng.randint(1, 8)
        if doubt >= self._guess:
            return None
        right = answer(expression)
        places = [i for i, character in enumerate(right) if character.isdigit()]
        at = places[int(place * len(places))]
        return f"{right[:at]}{_other(int(right[at]), shift, first=at == places[0])}{right[at + 1 :]}"


def _other(digit: int, shift: int, first: bool) -> int:
    """A digit that is not ``digit``; nor 0 as the first of a number."""
    return (digit - 1 + shift) % 9 + 1 if first and digit else (digit + shift) % 10


def _level(source: CalculatorSource, seed: int, family: str, level: int, seen: set[str]) -> Iterator[Prompt]:
    """Prompts of one family and level that are not in ``seen`` yet, until there are no new ones."""
    rng = Random(derive(seed, source.task, family, level))
    memory = Memory(Random(derive(seed, source.task, family, level, "teacher")), source.guess)
    for problem in fresh(lambda: draw(rng, family, level), lambda problem: problem.text, seen):
        solution = work(problem, lambda _: None)
        taught = work(problem, memory)
        yield prompt_of(source, family, level, text=problem.text, solution=solution, demonstration=taught)
