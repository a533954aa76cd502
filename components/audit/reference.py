"""What a reference answer is, read independently of every verifier. In doubt no probes are made from it."""

from __future__ import annotations

import re
from fractions import Fraction

DIGITS = 60
"""A longer number is not read."""
_WHOLE = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_PLAIN = re.compile(rf"(?P<sign>-?)(?P<value>{_WHOLE}(?:\.\d+)?)(?:/(?P<below>\d+))?", re.ASCII)
_FRACTION = re.compile(r"(?P<sign>-?)\\[dt]?frac\{(?P<value>\d+)\}\{(?P<below>\d+)\}", re.ASCII)
_ANY = re.compile(rf"-?{_WHOLE}(?:\.\d+)?(?:/\d+)?", re.ASCII)


def bare(answer: str) -> str:
    """Without white space around it and the dollar signs of mathematics."""
    plain = answer.strip()
    return plain[1:-1].strip() if len(plain) > 2 and plain[0] == plain[-1] == "$" else plain


def number(answer: str) -> Fraction | None:
    """The value of an answer that is one number and nothing else: ``-1,234.5``, ``3/4``, ``\\frac{3}{4}``, ``$5``."""
    plain = bare(answer)
    match = _PLAIN.fullmatch(plain.removeprefix("$")) or _FRACTION.fullmatch(plain)
    if match is None or len(plain) > DIGITS or not int(match["below"] or 1):
        return None
    value = Fraction(match["value"].replace(",", "")) / int(match["below"] or 1)
    return -value if match["sign"] else value


def integer(answer: str) -> int | None:
    """The value of an answer that is written as a whole number, without any dress."""
    plain = bare(answer)
    return int(plain) if len(plain) <= DIGITS and re.fullmatch(r"-?\d+", plain, re.ASCII) else None


def numbers(text: str) -> list[Fraction]:
    """Every number that stands in a text."""
    return [value for found in _ANY.findall(text) if (value := number(found)) is not None]


def operands(question: str) -> list[str]:
    """The different whole numbers of a question, as they are written, in order."""
    found = re.findall(r"(?<![\d.,/])\d+(?![\d/]|[.,]\d)", question, re.ASCII)
    return [text for text in dict.fromkeys(found) if len(text) <= DIGITS]
