"""Distinct prompts, spread evenly over families and levels."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from random import Random

from components.config.data import Family, GeneratedSource
from components.errors import InputError
from components.seeds import derive
from components.tasks.arithmetic.columns import careful, careless
from components.tasks.arithmetic.families import FAMILIES
from components.tasks.identity import content_id
from components.types import Prompt

EXHAUSTED_AFTER = 2000
"""Repeats in a row after which a family has no new question at a level."""


def generate(source: GeneratedSource, seed: int) -> list[Prompt]:
    """``source.rows`` distinct prompts; the same seed gives the same prompts.

    Families take turns, and within a family its levels do. A level with fewer questions than its share (comparison of
    one digit has 72) gives what it has and the family's other levels fill up; a family that has run out is filled up by
    the others. More rows extend the list at its end; another ``forget`` changes demonstrations only.

    Raises:
        InputError: so many distinct problems do not exist.
    """
    prompts = list(islice(_round_robin([_family(source, seed, family) for family in source.families]), source.rows))
    if len(prompts) < source.rows:
        raise InputError(
            f"only {len(prompts)} distinct problems exist, {source.rows} were asked for",
            where="data.source.rows",
            how="ask for fewer rows, or for more levels or families",
        )
    return prompts


def _family(source: GeneratedSource, seed: int, family: Family) -> Iterator[Prompt]:
    """Distinct prompts of one family, its levels in turn. Levels may overlap: the first to draw a question has it."""
    seen: set[str] = set()
    return _round_robin([_level(source, seed, family, level, seen) for level in range(1, source.levels + 1)])


def _level(source: GeneratedSource, seed: int, family: Family, level: int, seen: set[str]) -> Iterator[Prompt]:
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


def _round_robin(parts: Iterable[Iterator[Prompt]]) -> Iterator[Prompt]:
    """One of each in turn; a part that has run out is left out from then on."""
    waiting = deque(parts)
    while waiting:
        part = waiting.popleft()
        for prompt in islice(part, 1):
            yield prompt
            waiting.append(part)
