"""What generated tasks have in common: how their prompts are spread, evenly over families and levels, wherever the list
ends, none twice; and teachers that forget."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from components.config.tasks import Generated, GeneratedSource
from components.content_id import content_id
from components.errors import InputError
from components.types import Prompt

EXHAUSTED_AFTER = 2000
"""Repeats in a row after which a family has no new question at a level."""
Drawn = TypeVar("Drawn")
Level = Callable[[str, int, set[str]], Iterator[Prompt]]
"""Family, level and the texts that exist already -> new prompts, until there are none."""
Forget = Callable[[], bool]
"""Called wherever a teacher can forget something: is it left out?"""


def careful() -> bool:
    """The memory that forgets nothing."""
    return False


def careless() -> bool:
    """The memory that forgets everything."""
    return True


def spread(source: GeneratedSource, level: Level) -> list[Prompt]:
    """``source.rows`` distinct prompts: families take turns, and within a family its levels do.

    A level with fewer questions than its share gives what it has and the family's other levels fill up; a family that
    has run out is filled up by the others. Levels may overlap: the first to draw a question has it.

    Raises:
        InputError: so many distinct problems do not exist.
    """

    def prompts_of(family: str) -> Iterator[Prompt]:
        seen: set[str] = set()
        return round_robin([level(family, number, seen) for number in range(1, source.levels + 1)])

    found = list(islice(round_robin([prompts_of(family) for family in source.families]), source.rows))
    if len(found) < source.rows:
        raise InputError(
            f"only {len(found)} distinct problems exist, {source.rows} are needed",
            where="data.source.rows",
            how="ask for fewer rows, or for more levels or families",
        )
    return found


def prompt_of(
    source: Generated,
    family: str,
    level: int,
    *,
    text: str,
    solution: str,
    demonstration: str,
    answer: str | None = None,
) -> Prompt:
    """The prompt of a question, named by its content. Its answer is what follows the last ``#`` of the solution, or all
    of that, unless it is given."""
    return Prompt(
        id=content_id(source.task, text),
        text=text,
        answer=solution.rpartition("#")[2] if answer is None else answer,
        solution=solution,
        demonstration=demonstration,
        task=source.task,
        source=source.kind,
        family=family,
        difficulty=float(level),
    )


def fresh(draw: Callable[[], Drawn], text: Callable[[Drawn], str], seen: set[str]) -> Iterator[Drawn]:
    """What ``draw`` gives, without repeats of a ``text`` that is in ``seen``; ends after too many of them in a row."""
    repeats = 0
    while repeats < EXHAUSTED_AFTER:
        drawn = draw()
        repeats += 1
        if text(drawn) not in seen:
            seen.add(text(drawn))
            repeats = 0
            yield drawn


def round_robin(parts: Iterable[Iterator[Prompt]]) -> Iterator[Prompt]:
    """One of each in turn; a part that has run out is left out from then on."""
    waiting = deque(parts)
    while waiting:
        part = waiting.popleft()
        for prompt in islice(part, 1):
            yield prompt
            waiting.append(part)
