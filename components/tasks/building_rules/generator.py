"""Distinct prompts, spread evenly over families and levels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random

from components.config.tasks import BuildingRulesSource
from components.seeds import derive
from components.tasks.building_rules.phrases import CONDITIONS, FAMILIES, OPENINGS, REQUIREMENTS, SUBJECTS, distinct
from components.tasks.building_rules.rules import Rule
from components.tasks.turns import careful, fresh, prompt_of, spread
from components.types import Prompt

SIZES = {1: (0, 1), 2: (1, 1), 3: (1, 2), 4: (2, 2)}
"""Level -> numbers of conditions and of requirements."""


def generate(source: BuildingRulesSource, seed: int) -> list[Prompt]:
    """``source.rows`` distinct prompts; the same seed gives the same prompts.

    More rows extend the list at its end; another ``forget`` changes demonstrations only.

    Raises:
        InputError: so many distinct rules do not exist.
    """
    return spread(source, partial(_level, source, seed))


def draw(rng: Random, family: str, level: int) -> Rule:
    """A rule whose first requirement is of the family. A ban has a condition at every level."""
    conditions, requirements = SIZES[level]
    first = FAMILIES[family](rng)
    ban = family == "ban"
    others = distinct(rng, [FAMILIES["ban"]] if ban else REQUIREMENTS, requirements - 1, [first])
    return Rule(
        opening=rng.choice(OPENINGS),
        subject=rng.choice(SUBJECTS),
        conditions=distinct(rng, CONDITIONS, max(1, conditions) if ban else conditions),
        verb="forbid" if ban else "require",
        requirements=[first, *others],
    )


def _level(source: BuildingRulesSource, seed: int, family: str, level: int, seen: set[str]) -> Iterator[Prompt]:
    """Prompts of one family and level that are not in ``seen`` yet, until there are no new ones."""
    rng = Random(derive(seed, source.task, family, level))
    memory = Random(derive(seed, source.task, family, level, "teacher"))
    for rule in fresh(lambda: draw(rng, family, level), lambda rule: rule.sentence, seen):
        expression = rule.expression(careful)
        taught = rule.expression(lambda: memory.random() < source.forget)
        yield prompt_of(
            source, family, level, text=rule.sentence, solution=expression, demonstration=taught, answer=expression
        )
