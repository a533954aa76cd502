"""Right when the final number is the reference number, however it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from components.rewards.answers import HIDDEN
from components.rewards.base import Verifier, final_answer
from components.rewards.units import Unit, unit_after
from components.types import Prompt

DIGITS = 4000
"""A longer number is not read; it equals nothing."""
# A number ends where neither a digit of any script nor an invisible character follows: what a person reads there is
# another number, or might be.
_ALONE = rf"[\d{HIDDEN}]"
_UNSIGNED = (
    r"(?>[0-9]{1,3}(?:,[0-9]{3})+(?!\d)(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3}(?!\d))?+"
    rf"(?!{_ALONE})"
)
_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w.)])[-+\u2212])?\s?[$€£]?\s?(?P<inner>(?<=[$€£])[-+\u2212])?"
    rf"(?<!{_ALONE})(?P<value>{_UNSIGNED})(?:\s?/\s?(?P<divisor>{_UNSIGNED}))?"
)
_EXPONENT = re.compile(r"(?<=[A-Za-z])\^\{?-?[0-9]\}?")
"""That of a unit, as in cm^3."""
_PERCENT = re.compile(r"\s?(?:\\?%|percent\b|per cent\b)")


class Quantity(NamedTuple):
    """A number as it was written; ``value`` is None for one that is too long to be read."""

    value: Fraction | None
    percent: bool
    unit: Unit | None


class NumericVerifier(Verifier):
    """Compares the number in the line after the last ``marker`` (without a marker: the last number) with the reference.

    Several different numbers in that line are no answer: a verifier that takes the first of them would accept the
    question, or a list of guesses.
    ``tolerance`` is relative to the reference, so a reference of 0 asks for 0. ``units``: ``strip`` ignores them,
    ``require`` wants the reference's own, ``convert`` any of its dimension; a word that is no unit of `units.UNITS`
    counts as none. ``percent``: with ``strip`` 50 % is 50, with ``fraction`` it is 1/2.
    """

    def __init__(self, marker: str | None, tolerance: float, units: str = "strip", percent: str = "strip") -> None:
        self.marker, self._tolerance, self._units, self._percent = marker, Fraction(tolerance), units, percent

    def accuracy(self, prompt: Prompt, text: str) -> float:
        """Raises ValueError when the reference answer is not a number: nothing could be right then."""
        reference, found = next(quantities(prompt.answer), None), self._answer(text)
        if reference is None or reference.value is None:
            raise ValueError(f"the reference answer {prompt.answer[:80]!r} is not a number")
        if found is None or found.value is None:
            return 0.0
        (kind, value), (wanted_kind, wanted) = (
            self._measured(found, found.value),
            self._measured(reference, reference.value),
        )
        return float(kind == wanted_kind and abs(value - wanted) <= self._tolerance * abs(wanted))

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        """The reference number, written in other ways."""
        forms = {"white space": f" {prompt.answer} ", "end of a sentence": f"{prompt.answer}."}
        found = next(quantities(prompt.answer), None)
        if found is not None and found.value is not None and not found.percent and found.unit is None:
            value = found.value
            if value.denominator == 1:
                forms |= {"decimal point": f"{value}.0", "two decimals": f"{value}.00", "thousands": f"{int(value):,}"}
            else:
                forms["fraction"] = f"{value.numerator}/{value.denominator}"
        return {name: self.wrap(form) for name, form in forms.items()}

    def _answer(self, text: str) -> Quantity | None:
        if self.marker is None:
            return next(iter([*quantities(text)][-1:]), None)
        line = (final_answer(text, self.marker) or "").strip().partition("\n")[0]
        found = {quantity.value for quantity in quantities(_EXPONENT.sub("", line))}
        return next(q for q in quantities(line) if q.value in found) if len(found) == 1 else None

    def _measured(self, quantity: Quantity, value: Fraction) -> tuple[str | None, Fraction]:
        """What is measured, and how much of it."""
        if self._percent == "fraction" and quantity.percent:
            value /= 100
        if self._units == "strip" or quantity.unit is None:
            return None, value
        if self._units == "require":
            return quantity.unit.name, value
        return quantity.unit.dimension, value * quantity.unit.factor


def quantities(text: str) -> Iterator[Quantity]:
    """Every number in ``text`` with what follows it, see `numbers`."""
    for match in _NUMBER.finditer(text):
        value, divisor = _exact(match["value"]), _exact(match["divisor"] or "1")
        if divisor == 0:
            continue
        negative = (match["sign"] or match["inner"] or "+") in "-\u2212"
        if value is not None and divisor is not None:
            value = (-value if negative else value) / divisor
        percent = _PERCENT.match(text, match.end()) is not None
        yield Quantity(value, percent, None if percent else unit_after(text[match.end() : match.end() + 60]))


def numbers(text: str) -> list[Fraction]:
    """Every number in ``text``, exactly: ``-1,234.50``, ``$3``, ``1/2``, ``6.02e23``, ``.5``.

    Currency and percent signs are decoration (``50%`` is 50, as published answers have it); a full stop after the
    digits ends a sentence; a minus directly after a word, a digit or a bracket is a hyphen or an operator. Digits are
    ASCII: what only looks like them is none, nor is a number that touches an invisible character.
    """
    return [quantity.value for quantity in quantities(text) if quantity.value is not None]


def _exact(digits: str) -> Fraction | None:
    return Fraction(Decimal(digits.replace(",", ""))) if len(digits) <= DIGITS else None
