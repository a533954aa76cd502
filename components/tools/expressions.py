"""Exact arithmetic on short expressions: numbers, ``+ - * /``, signs and brackets. Nothing is executed.

There are no powers, no names and no calls, and both length and size are bounded, so that no expression takes long.
"""

from __future__ import annotations

import re
from fractions import Fraction

MAX_CHARS = 64
MAX_SIZE = 10**15
_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*|\.\d+)|([-+*/()]))")


def evaluate(expression: str) -> Fraction:
    """The exact value.

    Raises:
        ValueError: not an expression, too long, a division by zero, or a result of 10^15 or more on the way.
    """
    if len(expression) > MAX_CHARS:
        raise ValueError(f"an expression has at most {MAX_CHARS} characters")
    return _Parser(_tokens(expression.rstrip())).whole()


def _tokens(expression: str) -> list[str]:
    tokens, position = [], 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None or not match[0].isascii():
            raise ValueError(f"cannot read {expression[position:]!r}")
        tokens.append(match[1] or match[2])
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent; the length of an expression bounds the depth."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = [*tokens, ""]
        self._next = 0

    def whole(self) -> Fraction:
        value = self._sum()
        if self._peek():
            raise ValueError(f"unexpected {self._peek()!r}")
        return value

    def _sum(self) -> Fraction:
        value = self._product()
        while self._peek() in ("+", "-"):
            sign = 1 if self._take() == "+" else -1
            value = _bounded(value + sign * self._product())
        return value

    def _product(self) -> Fraction:
        value = self._signed()
        while self._peek() in ("*", "/"):
            times = self._take() == "*"
            factor = self._signed()
            value = _bounded(value * factor) if times else _quotient(value, factor)
        return value

    def _signed(self) -> Fraction:
        if self._peek() in ("+", "-"):
            return self._signed() if self._take() == "+" else -self._signed()
        return self._atom()

    def _atom(self) -> Fraction:
        token = self._take()
        if token == "(":
            value = self._sum()
            if self._take() != ")":
                raise ValueError("a bracket is not closed")
            return value
        if not token or token in "+-*/)":
            raise ValueError(f"a number is missing before {token!r}")
        return _bounded(Fraction(token))

    def _peek(self) -> str:
        return self._tokens[self._next]

    def _take(self) -> str:
        token = self._tokens[self._next]
        self._next += bool(token)
        return token


def _quotient(value: Fraction, divisor: Fraction) -> Fraction:
    if divisor == 0:
        raise ValueError("division by zero")
    return _bounded(value / divisor)


def _bounded(value: Fraction) -> Fraction:
    if abs(value) >= MAX_SIZE:
        raise ValueError("the number is too large")
    return value
