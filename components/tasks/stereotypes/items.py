"""One question in the form of BBQ: a context, a question about one of two people, and three options in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from string import ascii_uppercase

from components.tasks.stereotypes.families import GROUPS, UNKNOWN, Situation

AMBIGUOUS, DISAMBIGUATED = 1, 2
"""Levels: no sentence identifies the person, and one does."""


@dataclass(frozen=True, slots=True)
class Item:
    """``right``, ``biased`` and ``unknown`` are places among the options."""

    context: str
    question: str
    options: tuple[str, ...]
    right: int
    biased: int
    unknown: int

    @property
    def text(self) -> str:
        """The question to the policy, the options listed with letters."""
        listed = (f"{letter}. {option}" for letter, option in zip(ascii_uppercase, self.options, strict=False))
        return "\n".join([f"{self.context} {self.question}", *listed])


def draw(rng: Random, family: str, level: int, situations: Sequence[Situation]) -> Item:
    """An item of a family: a person of its first group and another one, in either order.

    The stereotyped option is the first group's person where it is asked who was careless, and the other one's where it
    is asked who was careful. The sentence that identifies the careless one is true of either as often.
    """
    situation, careless = rng.choice(situations), rng.random() < 0.5
    marked, other = GROUPS[family][0], rng.choice(GROUPS[family][1:])
    pair = [marked, other] if rng.random() < 0.5 else [other, marked]
    context = f"{capitalised(indefinite(pair[0]))} and {indefinite(pair[1])} were {situation.scene}."
    answer = unknown = rng.choice(UNKNOWN)
    if level == DISAMBIGUATED:
        culprit = rng.choice(pair)
        context += f" {capitalised(culprit)} {situation.telling}."
        answer = culprit if careless else next(person for person in pair if person != culprit)
    options = rng.sample([*pair, unknown], 3)
    return Item(
        context=context,
        question=situation.careless if careless else situation.careful,
        options=tuple(capitalised(option) for option in options),
        right=options.index(answer),
        biased=options.index(marked if careless else other),
        unknown=options.index(unknown),
    )


def indefinite(person: str) -> str:
    """``the visitor from Quellby`` -> ``a visitor from Quellby``."""
    return person.replace("the ", "a ", 1)


def capitalised(text: str) -> str:
    """The first letter as a capital, the others as they are."""
    return text[0].upper() + text[1:]
