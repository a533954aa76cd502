"""Right when the answer is the reference number, however it is written."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, partial

from components.rewards.answers import answer_line, deceptive
from components.rewards.base import Verifier
from components.rewards.grammar.comparison import settled
from components.rewards.grammar.judging import read_once, reference, verdict
from components.rewards.grammar.nodes import Answer, NotRead, one_number
from components.rewards.grammar.scan import last_statement
from components.types import Prompt

MAX_CHARS = 4400
"""A longer answer is not read: it is wrong."""
LARGEST_BITS = 12_000
"""Of a numerator or denominator that Python writes out."""


class NumericVerifier(Verifier):
    """Compares the number in the line after the last ``marker`` (without a marker: the last number) with the reference.

    The line is one number in the grammar of `components.rewards.grammar`, with the words that may stand around it. A
    calculation is none, unless it says what it comes to (``6 * 7 = 42``); nor are several numbers: a verifier that
    takes the first of them would accept the question, or a list of guesses.
    ``tolerance`` is relative to the reference. Where that is whole, another whole number is wrong, and so is what is
    half of one or more away. ``units``: ``strip`` ignores them, ``require`` wants the reference's own, ``convert`` any
    of its dimension; a word that is no unit of `units.UNITS` counts as none, a scale (million) as part of the number.
    ``percent``: with ``strip`` 50 % is 50, with ``fraction`` it is 1/2.
    """

    def __init__(self, marker: str | None, tolerance: float, units: str = "strip", percent: str = "strip") -> None:
        self.marker, self._tolerance, self._units, self._percent = marker, Fraction(tolerance), units, percent
        self._reference = lru_cache(maxsize=1024)(partial(reference, algebra=False, same=self._same))

    def accuracy(self, prompt: Prompt, text: str) -> float:
        """Raises Refused when the reference is not one number, or the answer may or may not be it."""
        line = last_statement(text) if self.marker is None else answer_line(text, self.marker)
        if line is None or len(line) > MAX_CHARS or deceptive(line):
            line = ""
        right = self._reference(prompt.answer)
        return verdict(right, prompt.answer, line, algebra=False, same=self._same)

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        """The reference number, written in other ways."""
        try:
            found = read_once(prompt.answer, algebra=False)
            value = self._value(found)
        except NotRead:
            return {}
        forms = {"white space": f" {prompt.answer} ", "end of a sentence": f"{prompt.answer}."}
        if max(map(int.bit_length, value.as_integer_ratio())) > LARGEST_BITS:
            return {}
        if not found.percent and found.unit is None:
            if value.denominator == 1:
                forms |= {"decimal point": f"{value}.0", "two decimals": f"{value}.00", "thousands": f"{int(value):,}"}
            else:
                forms["fraction"] = f"{value.numerator}/{value.denominator}"
        return {name: self.wrap(form) for name, form in forms.items()}

    def _same(self, wanted: Answer, found: Answer) -> bool:
        (kind, value), (wanted_kind, wanted_value) = self._measured(found), self._measured(wanted)
        off = abs(value - wanted_value)
        rounds = wanted_value.denominator > 1 or 2 * off < 1
        return kind == wanted_kind and rounds and off <= self._tolerance * abs(wanted_value)

    def _measured(self, answer: Answer) -> tuple[str | None, Fraction]:
        """What is measured, and how much of it."""
        value = self._value(answer)
        if self._percent == "fraction" and answer.percent:
            value /= 100
        if self._units == "strip" or answer.unit is None:
            return None, value
        if self._units == "require":
            return answer.unit.name, value
        return answer.unit.dimension, value * answer.unit.factor

    @staticmethod
    def _value(answer: Answer) -> Fraction:
        value = one_number(settled(answer).node)
        if value is None:
            raise NotRead("it is not one number")
        return value
