"""Distinct prompts, spread evenly over families and levels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random

from components.config.tasks import ArithmeticSource
from components.seeds import derive
from components.tasks.arithmetic.families import FAMILIES
from components.tasks.turns import careful, careless, fresh, prompt_of, spread
from components.types import Prompt


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
        yield prompt_of(
            source,
            family,
            level,
            text=question.text,
            solution=solution,
            demonstration=taught,
            answer=solution.rpartition("#")[2],
        )
