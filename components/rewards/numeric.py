"""Right when the final number is the reference number, however it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from components.rewards.answers import HIDDEN
from components.rewards.base import Verifier, final_answer
from components.rewards.units import Unit, scale_after, unit_after
from components.types import Prompt

DIGITS = 4000
"""A longer number is not read; it equals nothing."""
# A number ends where neither a digit of any script nor an invisible character follows: what a person reads there is
# another number, or might be.
_ALONE = rf"[\d{HIDDEN}]"
_UNSIGNED = (
    r"(?>[0-9]{1,3}(?:,[0-9]{3})+(?!\d)(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
    r"(?:[eE][-+]?[0-9]{1,3}(?!\d)|(?![eE][-+]?[0-9]{1,3}(?!\d)))"  # with an exponent wherever there is one
    rf"(?!{_ALONE})"
)
MINUS = "\\-\u2010-\u2015\u2212\ufe63\uff0d"
"""Characters of a regular expression's class that a person reads as a minus before a number."""
_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w.)])[{MINUS}+])?\s?(?P<money>\\?[$€£])?\s?(?P<inner>(?<=[$€£])[{MINUS}+])?"
    rf"(?<!{_ALONE})(?P<value>{_UNSIGNED})(?:\s?/\s?(?P<divisor>{_UNSIGNED}))?"
)
_MINUS_BEFORE = re.compile(rf"(?<![\w.)\]}}])[{MINUS}](?:[\s(\[{{$€£~*_]|\\(?:[A-Za-z]+|[^A-Za-z0-9])){{1,12}}\Z")
"""That of a number in brackets or in LaTeX dress."""
_FUNCTION_BEFORE = re.compile(r"(?:√\s*[({]?|(?<![A-Za-z])\\?(?:sqrt|log|ln|sin|cos|tan|exp)\s*[({\[])\s*\Z")
_FACTORIAL_OR_POWER = re.compile(r"[)}\s]?(?:!(?!=)|[⁰¹²³⁴-⁹ⁿ])")
LINE = 200
"""Characters after a dollar sign in which another one makes the two of them mathematics."""
BEFORE = 40
"""Characters before a number in which its minus is looked for."""
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]{1,40})\}\s*\{([^{}]{1,40})\}")
_SUM = re.compile(rf"[\d)}}]\s?[{MINUS}+*^×÷·]\s?[({{$]*\.?\d|\d[\s$€£]+\d|\d\(")
"""A calculation: its numbers are not the answer, even where they are all the same."""
_EXPONENT = re.compile(r"(?:(?<=[A-Za-z])|(?<=[A-Za-z]\}))\s?\^\s?\{?[+-]?[0-9]+\}?")
"""Behind a letter, as in cm^3, it is no number of its own."""
_PERCENT = re.compile(r"\s?(?:\\?%|percent\b|per cent\b)")


class Quantity(NamedTuple):
    """A number as it was written; ``value`` is None for one that is not read: too long, 1/0, 5!, the root of 5."""

    value: Fraction | None
    percent: bool
    unit: Unit | None


class NumericVerifier(Verifier):
    """Compares the number in the line after the last ``marker`` (without a marker: the last number) with the reference.

    Several different numbers in that line are no answer, nor is a calculation: a verifier that takes the first of them
    would accept the question, or a list of guesses.
    Whole numbers must be the same; ``tolerance`` is for all others and relative to the reference. ``units``:
    ``strip`` ignores them, ``require`` wants the reference's own, ``convert`` any of its dimension; a word that is no
    unit of `units.UNITS` counts as none, a scale (million) as part of the number. ``percent``: with ``strip`` 50 % is
    50, with ``fraction`` it is 1/2.
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
        whole = value.denominator == wanted.denominator == 1
        allowed = 0 if whole else self._tolerance * abs(wanted)
        return float(kind == wanted_kind and abs(value - wanted) <= allowed)

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        """The reference number, written in other ways."""
        found = next(quantities(prompt.answer), None)
        if found is None or found.value is None:
            return {}
        forms = {"white space": f" {prompt.answer} ", "end of a sentence": f"{prompt.answer}."}
        if not found.percent and found.unit is None:
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
        found = [*quantities(line)]
        return (
            found[0]
            if len({quantity.value for quantity in found}) == 1 and not _SUM.search(_EXPONENT.sub("", line))
            else None
        )

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
    text = _FRACTION.sub(r" \1/\2", text).replace("{,}", ",")
    for match in _NUMBER.finditer(_EXPONENT.sub(lambda found: "^" * len(found[0]), text)):
        before, after = max(0, match.start() - BEFORE), text[match.end() : match.end() + 60]
        value, divisor = _exact(match["value"]), _exact(match["divisor"] or "1")
        scale, after = scale_after(after)
        if not divisor or _FUNCTION_BEFORE.search(text, before, match.start()) or _FACTORIAL_OR_POWER.match(after):
            value = None
        if value is not None and divisor:
            written = (match["sign"] or "+") + (match["inner"] or "+")
            minuses = sum(character != "+" for character in written)
            minuses += _MINUS_BEFORE.search(text, before, match.start()) is not None
            value *= (-1) ** minuses * scale / divisor
        percent = _PERCENT.match(after) is not None
        yield Quantity(value, percent, None if percent else _unit(after, match["money"], text, match.end()))


def _unit(after: str, money: str | None, text: str, end: int) -> Unit | None:
    """That of a number; two dollar signs around it make it mathematics, one before it is a unit."""
    if money == "$" and "$" in text[end : end + LINE].partition("\n")[0]:
        return unit_after(after.replace("$", ""))
    return unit_after(after) or (unit_after(money[-1] + after) if money else None)


def numbers(text: str) -> list[Fraction]:
    """Every number in ``text``, exactly: ``-1,234.50``, ``$3``, ``1/2``, ``6.02e23``, ``.5``.

    Currency and percent signs are decoration (``50%`` is 50, as published answers have it); a full stop after the
    digits ends a sentence; a minus directly after a word, a digit or a bracket is a hyphen or an operator. Digits are
    ASCII: what only looks like them is none, nor is a number that touches an invisible character.
    """
    return [quantity.value for quantity in quantities(text) if quantity.value is not None]


def _exact(digits: str) -> Fraction | None:
    return Fraction(Decimal(digits.replace(",", ""))) if len(digits) <= DIGITS else None
