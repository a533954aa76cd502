"""Which steps of a run the final weights never saw, because a roll-back went back before them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from components.types import Response


@dataclass(frozen=True, slots=True)
class Discarded:
    """Steps ``first`` to ``last`` of the record, thrown away by the response ``by``."""

    first: int
    last: int
    by: int
    steps: int


def discarded(steps: Sequence[int], responses: Iterable[Response]) -> list[Discarded]:
    """What every roll-back threw away.

    Args:
        steps: the record's steps, in order; they go on counting after a roll-back.
        responses: those of the run. One with ``back_to`` went back to the state before the step of that number.
    """
    found = []
    kept: list[int] = []
    waiting = list(steps)
    for response in sorted((one for one in responses if one.back_to is not None), key=lambda one: one.number):
        kept += [step for step in waiting if step <= response.step]
        waiting = [step for step in waiting if step > response.step]
        back = response.back_to or 0
        gone, kept = [step for step in kept if step >= back], [step for step in kept if step < back]
        found += [Discarded(part[0], part[-1], response.number, len(part)) for part in _runs(gone, steps)]
    return found


def undone(steps: Sequence[int], responses: Iterable[Response]) -> set[int]:
    """The steps of the record that the final weights never saw; arguments as of `discarded`."""
    parts = discarded(steps, responses)
    return {step for step in steps if any(part.first <= step <= part.last for part in parts)}


def _runs(gone: Sequence[int], steps: Sequence[int]) -> list[list[int]]:
    """Parts without a step between them that is not gone."""
    place = {step: index for index, step in enumerate(steps)}
    parts = [[step] for step in gone[:1]]
    for before, after in pairwise(gone):
        if place[after] == place[before] + 1:
            parts[-1].append(after)
        else:
            parts.append([after])
    return parts
