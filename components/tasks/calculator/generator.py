"""Distinct prompts with demonstrations, spread evenly over families and levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from components.config.data import CalculatorFamily, CalculatorSource
from components.seeds import derive
from components.tasks.calculator.problems import Problem, draw
from components.tasks.identity import content_id
from components.tasks.turns import EXHAUSTED_AFTER, round_robin, take
from components.tools.calculator import annotation, answer
from components.types import Prompt


def generate(source: CalculatorSource, seed: int) -> list[Prompt]:
    """``source.rows`` distinct prompts; the same seed gives the same prompts.

    Families take turns, and within a family its levels do. More rows extend the list at its end; another ``guess``
    changes demonstrations only.

    Raises:
        InputError: so many distinct problems do not exist.
    """
    return take(round_robin([_family(source, seed, family) for family in source.families]), source.rows)


def work(problem: Problem, guess: Callable[[str], str | None]) -> str:
    """``<<47+38=85>>;<<85*12=1020>>#1020``: a call a step, each with the result of the one before, then the answer.

    ``guess`` is asked at every step for a result from memory. Where it has one, that is written without a call
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


def _family(source: CalculatorSource, seed: int, family: CalculatorFamily) -> Iterator[Prompt]:
    seen: set[str] = set()
    return round_robin([_level(source, seed, family, level, seen) for level in range(1, source.levels + 1)])


def _level(
    source: CalculatorSource, seed: int, family: CalculatorFamily, level: int, seen: set[str]
) -> Iterator[Prompt]:
    """Prompts of one family and level that are not in ``seen`` yet, until there are no new ones."""
    rng = Random(derive(seed, source.task, family, level))
    memory = Memory(Random(derive(seed, source.task, family, level, "teacher")), source.guess)
    repeats = 0
    while repeats < EXHAUSTED_AFTER:
        problem = draw(rng, family, level)
        if problem.text in seen:
            repeats += 1
            continue
        seen.add(problem.text)
        repeats = 0
        solution = work(problem, lambda _: None)
        yield Prompt(
            id=content_id(source.task, problem.text),
            text=problem.text,
            answer=solution.rpartition("#")[2],
            solution=solution,
            demonstration=work(problem, memory),
            task=source.task,
            source=source.kind,
            family=family,
            difficulty=float(level),
        )
