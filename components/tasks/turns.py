"""Taking turns, so that a generated data set is even over its parts wherever it ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from components.errors import InputError
from components.types import Prompt

EXHAUSTED_AFTER = 2000
"""Repeats in a row after which a family has no new question at a level."""


def round_robin(parts: Iterable[Iterator[Prompt]]) -> Iterator[Prompt]:
    """One of each in turn; a part that has run out is left out from then on."""
    waiting = deque(parts)
    while waiting:
        part = waiting.popleft()
        for prompt in islice(part, 1):
            yield prompt
            waiting.append(part)


def take(prompts: Iterator[Prompt], rows: int) -> list[Prompt]:
    """The first ``rows`` prompts.

    Raises:
        InputError: so many distinct problems do not exist.
    """
    found = list(islice(prompts, rows))
    if len(found) < rows:
        raise InputError(
            f"only {len(found)} distinct problems exist, {rows} were asked for",
            where="data.source.rows",
            how="ask for fewer rows, or for more levels or families",
        )
    return found
