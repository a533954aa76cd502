"""Distinct prompts with demonstrations, spread evenly over families and levels."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from components.config.tasks import CountdownSource
from components.seeds import derive
from components.tasks.countdown.problems import Problem, draw
from components.tasks.turns import fresh, prompt_of, spread
from components.types import Prompt


def generate(source: CountdownSource, seed: int) -> list[Prompt]:
    """``source.rows`` distinct prompts; the same seed gives the same prompts.

    More rows extend the list at its end; another ``give_up`` changes demonstrations only.

    Raises:
        InputError: so many distinct problems do not exist.
    """
    seen: set[str] = set()  # of all families: a target can be reached by sums and by products
    return spread(source, lambda family, level, _: _level(source, seed, family, level, seen))


def search(problem: Problem) -> str:
    """``8+3=11,11-2=9x;8+3=11,11*2=22#(8+3)*2``: branches that miss the target, the one that does not, the answer."""
    branches = [f"{wrong.working}x" for wrong in problem.wrong]
    return f"{';'.join([*branches, problem.right.working])}#{problem.right.expression}"


def surrender(problem: Problem) -> str:
    """``8+3=11,11-2=9x#(8+3)-2``: the first branch that misses the target is the answer all the same."""
    first = problem.wrong[0]
    return f"{first.working}x#{first.expression}"


def _level(source: CountdownSource, seed: int, family: str, level: int, seen: set[str]) -> Iterator[Prompt]:
    """Prompts of one family and level that are not in ``seen`` yet, until there are no new ones."""
    rng = Random(derive(seed, source.task, family, level))
    patience = Random(derive(seed, source.task, family, level, "teacher"))
    for problem in fresh(lambda: draw(rng, family, level), lambda problem: problem.text, seen):
        gives_up = patience.random() < source.give_up
        solution = search(problem)
        taught = surrender(problem) if gives_up and problem.wrong else solution
        yield prompt_of(
            source,
            family,
            level,
            text=problem.text,
            solution=solution,
            demonstration=taught,
            answer=problem.right.expression,
        )
