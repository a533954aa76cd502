"""Distinct prompts with demonstrations, spread evenly over families and levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random

from components.config.tasks import CalculatorSource
from components.seeds import derive
from components.tasks.calculator.problems import Problem, draw
from components.tasks.turns import fresh, prompt_of, spread
from components.tools.calculator import annotation, answer
from components.types import Prompt


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
        yield prompt_of(
            source,
            family,
            level,
            text=problem.text,
            solution=solution,
            demonstration=taught,
            answer=solution.rpartition("#")[2],
        )
