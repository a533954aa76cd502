"""Distinct prompts, spread evenly over families and levels."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from components.config.data import ArithmeticSource, Family
from components.seeds import derive
from components.tasks.arithmetic.columns import careful, careless
from components.tasks.arithmetic.families import FAMILIES
from components.tasks.identity import content_id
from components.tasks.turns import EXHAUSTED_AFTER, round_robin, take
from components.types import Prompt


def generate(source: ArithmeticSource, seed: int) -> list[Prompt]:
    """``source.rows`` distinct prompts; the same seed gives the same prompts.

    Families take turns, and within a family its levels do. A level with fewer questions than its share (comparison of
    one digit has 72) gives what it has and the family's other levels fill up; a family that has run out is filled up by
    the others. More rows extend the list at its end; another ``forget`` changes demonstrations only.

    Raises:
        InputError: so many distinct problems do not exist.
    """
    return take(round_robin([_family(source, seed, family) for family in source.families]), source.rows)


def _family(source: ArithmeticSource, seed: int, family: Family) -> Iterator[Prompt]:
    """Distinct prompts of one family, its levels in turn. Levels may overlap: the first to draw a question has it."""
    seen: set[str] = set()
    return round_robin([_level(source, seed, family, level, seen) for level in range(1, source.levels + 1)])


def _level(source: ArithmeticSource, seed: int, family: Family, level: int, seen: set[str]) -> Iterator[Prompt]:
    """Prompts of one family and level that are not in ``seen`` yet, until there are no new ones."""
    draw = FAMILIES[family]
    rng = Random(derive(seed, source.task, family, level))
    memory = Random(derive(seed, source.task, family, level, "teacher"))
    repeats = 0
    while repeats < EXHAUSTED_AFTER:
        question = draw(rng, level)
        if question.text in seen:
            repeats += 1
            continue
        seen.add(question.text)
        repeats = 0
        solution = question.operation(question.a, question.b, careful)
        nothing_to_forget = solution == question.operation(question.a, question.b, careless)
        if nothing_to_forget and rng.random() >= source.carry_free:
            continue
        yield Prompt(
            id=content_id(source.task, question.text),
            text=question.text,
            answer=solution.rpartition("#")[2],
            solution=solution,
            demonstration=question.operation(question.a, question.b, lambda: memory.random() < source.forget),
            task=source.task,
            source=source.kind,
            family=family,
            difficulty=float(level),
        )
