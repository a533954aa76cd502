"""How numbers, fractions and sums are written, plain and in LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Term = tuple[int, str]
"""A coefficient and what it is multiplied with; "" for a constant."""
AS_TEXT = (("\\$", "$"), ("\\%", "%"), ("{,\\!}", ","), (",\\!", ","), ("{,}", ","))


def over(numerator: int, denominator: int, command: str = "frac") -> str:
    """A fraction as it is given, not reduced, the sign in front."""
    return rf"{minus(numerator)}\{command}{{{abs(numerator)}}}{{{denominator}}}"


def minus(number: Fraction | int) -> str:
    """The sign that is written before the absolute value."""
    return "-" if number < 0 else ""


def rational(value: Fraction, command: str = "frac") -> str:
    """A whole number, or a reduced fraction."""
    return str(value.numerator) if value.denominator == 1 else over(value.numerator, value.denominator, command)


def terminates(value: Fraction) -> bool:
    """Whether the decimal expansion is finite."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def decimal(value: Fraction) -> str:
    """The exact decimal expansion of a value that has a finite one."""
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    digits = str(abs(int(value * 10**places))).rjust(places + 1, "0")
    return minus(value) + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def grouped(digits: str) -> str:
    """With commas between thousands."""
    whole, point, rest = digits.lstrip("-").partition(".")
    return f"{'-' if digits.startswith('-') else ''}{int(whole):,}{point}{rest}"


def total(terms: Sequence[Term]) -> str:
    """A sum of terms without spaces: ``2x^2-x+5``. Terms that are zero are left out."""
    written = ""
    for coefficient, factor in terms:
        if coefficient:
            sign = "-" if coefficient < 0 else "+" if written else ""
            size = "" if abs(coefficient) == 1 and factor else str(abs(coefficient))
            written += f"{sign}{size}{factor}"
    return written or "0"


def spaced(written: str) -> str:
    """The same sum with spaces around its signs, but for the first."""
    return written[0] + written[1:].replace("+", " + ").replace("-", " - ")


def as_text(written: str) -> str:
    """A number without LaTeX; what is more than a number stays as it is."""
    for latex, text in AS_TEXT:
        written = written.replace(latex, text)
    if written.count("\\") == 1 and "\\text{ " in written:
        return written.replace("\\text{ ", " ").replace("}", "")
    return written
