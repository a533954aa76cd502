"""Reads the work of a completion: equations, numbers, and the answer as a number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?", re.ASCII)
_LEFT = re.compile(r"[\d.,$ ]+(?:[-+*/][\d.,$ ]+)+$", re.ASCII)
_RIGHT = re.compile(r"[ $]*(-?\d[\d,]*(?:\.\d+)?)", re.ASCII)
_TERM = re.compile(r"(^|[-+])([^-+]+)")
_FACTOR = re.compile(r"(^|[*/])([^*/]+)")
SPAN = 80
"""Characters next to an equals sign that can belong to its equation."""
DIGITS = 30
"""Longer numbers are not read."""


@dataclass(frozen=True, slots=True)
class Equation:
    """``left = right`` with at least one operation on the left."""

    left: str
    right: str

    @property
    def true(self) -> bool:
        return evaluate(self.left) == value(self.right)


@dataclass(frozen=True)
class Case:
    """One question with the thinking and the answer of a completion, read once for all features.

    ``results`` are the right-hand sides of the equations, ``numbers`` all numbers of the thinking as they are written,
    ``wanted`` is the answer as a number. What cannot be read as a number is None.
    """

    question: str
    thinking: str
    answer: str
    equations: Sequence[Equation]
    results: Sequence[Fraction | None]
    numbers: Sequence[str]
    wanted: Fraction | None

    @classmethod
    def read(cls, question: str, thinking: str, answer: str) -> Case:
        found = equations(thinking)
        results, numbers = [value(equation.right) for equation in found], NUMBER.findall(thinking)
        return cls(question, thinking, answer, found, results, numbers, value(answer))


def equations(text: str) -> list[Equation]:
    """Every ``expression = number`` in the text."""
    found = []
    for sign in re.finditer("=", text):
        left = _LEFT.search(text[max(0, sign.start() - SPAN) : sign.start()])
        right = _RIGHT.match(text[sign.end() : sign.end() + SPAN])
        if left and right:
            found.append(Equation(left[0], right[1]))
    return found


def evaluate(expression: str) -> Fraction | None:
    """Numbers with ``+ - * /`` and no brackets, exactly; None for what is not such an expression."""
    total = Fraction(0)
    for sign, term in _TERM.findall(expression):
        product = Fraction(1)
        for operation, factor in _FACTOR.findall(term):
            number = value(factor)
            if number is None or (operation == "/" and not number):
                return None
            product = product / number if operation == "/" else product * number
        total += -product if sign == "-" else product
    return total


def value(text: str) -> Fraction | None:
    """The one number that ``text`` is, apart from spaces, ``$`` and separators of thousands."""
    plain = text.replace(",", "").strip(" $")
    if len(plain) > DIGITS or not re.fullmatch(r"-?\d+(\.\d+)?", plain, re.ASCII):
        return None
    return Fraction(plain)
