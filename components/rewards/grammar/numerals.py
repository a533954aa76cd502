"""What the digits of a number say."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from components.rewards.grammar.nodes import Node, NotRead, number
from components.rewards.grammar.tokens import BASE_NAMES, DIGITS

MAX_EXPONENT = 4000
_NAME = re.compile(rf"(?<![a-z])(?:{'|'.join(BASE_NAMES)})(?![a-z])")


def written(text: str) -> Node:
    """The number of a token: ``12``, ``.5``, ``6.02e23``, ``0.1(6)``.

    Raises:
        NotRead: it has more digits, or a larger exponent, than is read.
    """
    plain, _, repeated = text.rstrip(")").partition("(")
    digits, _, exponent = plain.lower().partition("e")
    if len(digits) > DIGITS or len(exponent) > 6 or abs(int(exponent or "0")) > MAX_EXPONENT:
        raise NotRead("a number with more digits than anybody writes")
    value = Fraction(Decimal(digits.rstrip(".") or "0"))
    if repeated:
        value += Fraction(int(repeated), (10 ** len(repeated) - 1) * 10 ** len(digits.partition(".")[2]))
        return number(value)
    return number(value * Fraction(10) ** int(exponent or "0"), "." in digits or exponent.startswith("-"))


def base_numeral(text: str) -> Node:
    """``2516_8``, ``1A_{16}``, ``101_{\\text{two}}``: the digits and the base."""
    digits, _, rest = text.partition("_")
    figures, name = re.search(r"[0-9]+", rest), _NAME.search(rest)
    base = int(figures[0]) if figures else BASE_NAMES.index(name[0]) + 2 if name else 0
    return Node("base", (digits.strip().upper().lstrip("0") or "0", base))
