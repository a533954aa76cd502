"""A question's reference answer with all that is drawn along with it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Reference:
    """``forms`` say the same as ``answer`` and ``wrong`` does not, both LaTeX by name; ``other`` is a wrong answer of
    the same kind, which is stated next to the right one.

    ``variable`` and ``unit`` may stand before and behind a form in a box; None where neither is usual. ``numeric``: the
    verifier of numbers can judge it. ``scalar``: it is one value, so ranges and signs can be made of it.
    """

    answer: str
    forms: dict[str, str]
    wrong: dict[str, str]
    question: str
    other: str
    variable: str | None = None
    unit: str | None = None
    numeric: bool = False
    scalar: bool = False


Draw = Callable[[random.Random, int], Reference]
"""Draws the reference with this number (0, 1, ...) of a kind; variants of a kind take turns by the number."""


Variant = tuple[str, float, dict[str, str], dict[str, str]]
"""Of an exact number: how it is written, its value, other ways to write it, and wrong answers."""


def exact(variant: Variant, question: str, variable: str) -> Reference:
    """A number that no decimal gives exactly: a rounded one is wrong."""
    answer, value, forms, wrong = variant
    return Reference(
        answer=answer,
        forms={"same": answer} | forms,
        wrong=wrong | {"approximation": f"{value:.2f}"},
        question=question,
        other=f"{answer}+1",
        variable=variable,
        scalar=True,
    )


def sign(rng: random.Random) -> int:
    """1 or -1."""
    return rng.choice([1, -1])


def proper_fraction(rng: random.Random, largest: int = 15, improper: bool | None = None) -> Fraction:
    """A positive fraction that is no whole number, with a denominator up to ``largest``, above 1 or not."""
    while True:
        value = Fraction(rng.randint(1, 19), rng.randint(2, largest))
        if value.denominator != 1 and improper in (None, value > 1):
            return value


def entry(rng: random.Random) -> Fraction:
    """A coordinate or an entry of a matrix: three in four are whole."""
    if rng.random() < 0.75:
        return Fraction(rng.randint(-9, 9))
    return proper_fraction(rng, 9) * sign(rng)


def elements(rng: random.Random) -> list[Fraction]:
    """Two to four different values of a set or a list."""
    count, found = rng.randint(2, 4), list[Fraction]()
    while len(found) < count:
        value = Fraction(rng.randint(-12, 20)) if rng.random() < 0.85 else proper_fraction(rng, 5)
        if value not in found:
            found.append(value)
    return found
