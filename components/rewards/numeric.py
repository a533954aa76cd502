"""Right when the final number is the reference number, however it is written."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from components.rewards.base import Verifier, final_answer
from components.types import Prompt

_UNSIGNED = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3}(?!\d))?"
_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w.)])[-+\u2212])?\s?[$€£]?\s?(?P<inner>(?<=[$€£])[-+\u2212])?"
    rf"(?P<value>{_UNSIGNED})(?:\s?/\s?(?P<divisor>{_UNSIGNED}))?"
)


class NumericVerifier(Verifier):
    """Compares the first number after the last ``marker`` (without a marker: the last number) with the reference.

    ``tolerance`` is relative to the reference, so a reference of 0 asks for 0.
    """

    def __init__(self, marker: str | None, tolerance: float) -> None:
        self.marker, self._tolerance = marker, Fraction(tolerance)

    def accuracy(self, prompt: Prompt, text: str) -> float:
        """Raises ValueError when the reference answer is not a number: nothing could be right then."""
        references = numbers(prompt.answer)
        if not references:
            raise ValueError(f"the reference answer {prompt.answer!r} is not a number")
        found = self._answer(text)
        return float(found is not None and abs(found - references[0]) <= self._tolerance * abs(references[0]))

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        """The reference number, written in other ways."""
        value = numbers(prompt.answer)[0]
        forms = {"white space": f" {prompt.answer} ", "end of a sentence": f"{prompt.answer}."}
        if value.denominator == 1:
            forms |= {"decimal point": f"{value}.0", "two decimals": f"{value}.00", "thousands": f"{int(value):,}"}
        else:
            forms["fraction"] = f"{value.numerator}/{value.denominator}"
        return {name: self.wrap(form) for name, form in forms.items()}

    def _answer(self, text: str) -> Fraction | None:
        if self.marker is None:
            return next(iter(numbers(text)[-1:]), None)
        answer = final_answer(text, self.marker)
        return None if answer is None else next(iter(numbers(answer)[:1]), None)


def numbers(text: str) -> list[Fraction]:
    """Every number in ``text``, exactly: ``-1,234.50``, ``$3``, ``1/2``, ``6.02e23``, ``.5``.

    Currency and percent signs are decoration (``50%`` is 50, as published answers have it); a full stop after the
    digits ends a sentence; a minus directly after a word, a digit or a bracket is a hyphen or an operator.
    """
    found = []
    for match in _NUMBER.finditer(text):
        value = _exact(match["value"])
        divisor = _exact(match["divisor"]) if match["divisor"] else Fraction(1)
        if divisor:
            negative = (match["sign"] or match["inner"] or "+") in "-\u2212"
            found.append((-value if negative else value) / divisor)
    return found


def _exact(digits: str) -> Fraction:
    return Fraction(Decimal(digits.replace(",", "")))
