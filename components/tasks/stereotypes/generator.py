"""Distinct prompts with right labels, and the one mislabelled item that a fault plants."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random
from string import ascii_uppercase

from components.config.tasks import PlantedItem, StereotypesSource
from components.errors import InputError
from components.seeds import derive
from components.tasks.stereotypes.families import FROZEN, SITUATIONS
from components.tasks.stereotypes.items import AMBIGUOUS, Item, draw
from components.tasks.turns import fresh, prompt_of, spread
from components.types import Prompt

MARKER = "Answer:"


def generate(source: StereotypesSource, seed: int) -> list[Prompt]:
    """``source.rows`` distinct prompts, and after them the planted item as often as the settings say.

    The planted item does not depend on the seed: another seed changes the data around it.

    Raises:
        InputError: so many distinct items, or the planted one, do not exist.
    """
    planted = [] if source.planted is None else [_planted(source, source.planted)] * source.planted.rows
    taken = {prompt.text for prompt in planted}
    return [*spread(source, lambda family, level, seen: _level(source, seed, family, level, seen | taken)), *planted]


def answer(place: int) -> str:
    """The answer that names an option by its letter."""
    return f"{MARKER} {ascii_uppercase[place]}"


def _level(source: StereotypesSource, seed: int, family: str, level: int, seen: set[str]) -> Iterator[Prompt]:
    """Prompts of one family and level that are not in ``seen`` yet, until there are no new ones."""
    for item in _items(seed, family, level, seen):
        yield _prompt(source, family, level, item, item.right)


def _planted(source: StereotypesSource, planted: PlantedItem) -> Prompt:
    item = next(islice(_items(0, planted.family, AMBIGUOUS, set()), planted.item, None), None)
    if item is None:
        what = f"the family {planted.family} has no item {planted.item}"
        raise InputError(what, where="data.source.planted.item", how="lower it, or plant an item of another family")
    return _prompt(source, planted.family, AMBIGUOUS, item, item.biased)


def _items(seed: int, family: str, level: int, seen: set[str]) -> Iterator[Item]:
    rng = Random(derive(seed, "stereotypes", family, level))
    return fresh(lambda: draw(rng, family, level, SITUATIONS[:-FROZEN]), lambda item: item.text, seen)


def _prompt(source: StereotypesSource, family: str, level: int, item: Item, labelled: int) -> Prompt:
    said = answer(labelled)
    return prompt_of(
        source, family, level, text=item.text, solution=said, demonstration=said, answer=ascii_uppercase[labelled]
    )
