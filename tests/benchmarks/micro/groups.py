"""Groups of scored completions of random words."""

from __future__ import annotations

import random

from components.types import Completion, Group, Prompt, Score
from tests.benchmarks.micro.cases import Updated
from tests.benchmarks.micro.shapes import END, FIRST


def groups_of(case: Updated) -> list[Group]:
    """Prompts of half to all of ``prompt``, completions of a quarter of what is left to all of it.

    In the share of groups without a gradient every reward is the same, in all others they are 0 and 1.
    """
    draw = random.Random(0)
    most = case.prompt or max(1, case.length // 4)
    room = case.length - most

    def words(count: int) -> tuple[int, ...]:
        return tuple(draw.randrange(FIRST, case.vocabulary) for _ in range(count))

    def completion(length: int) -> Completion:
        tokens = (*words(length - 1), END)
        return Completion(tokens, (0.0,) * len(tokens), "stop", "")

    without = round(case.without_gradient * case.prompts)
    found = []
    for number in range(case.prompts):
        # The first row is as long as rows get, so that every case is as wide as it says.
        lengths = [draw.randint(max(1, room // 4), room) if number or row else room for row in range(case.group)]
        prompt = words(draw.randint(max(1, most // 2), most) if number else most)
        scores = tuple(Score(1.0 if number < without else float(row % 2)) for row in range(case.group))
        found.append(
            Group(Prompt(str(number), "", "", ""), prompt, tuple(completion(length) for length in lengths), scores)
        )
    return found


def tokens_in(groups: list[Group]) -> int:
    """Of all rows with their prompts, without padding."""
    return sum(len(group.prompt_ids) + len(row.token_ids) for group in groups for row in group.completions)
