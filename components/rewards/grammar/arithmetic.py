"""Arithmetic that is exact where it is rational, and has 60 digits elsewhere. What would take long is not read."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

from components.rewards.grammar.nodes import NotRead

DIGITS, AGREED = 60, 40
"""Digits that are computed, and those that must agree."""
EXACT_BITS = 60_000
"""Longer results are not kept exactly."""
LARGEST, MAX_ANGLE = 10**7, 10**12
"""Natural logarithm of the largest value, and the largest number of which a function is computed."""

Value = Any
"""A `Fraction`, or a real or complex number of mpmath."""


@cache
def context() -> Any:
    """The arithmetic of 60 digits. It is loaded at first use: mpmath takes a tenth of a second."""
    from mpmath.ctx_mp import MPContext

    mp = MPContext()
    mp.dps = DIGITS
    return mp


def alike(one: Value, two: Value) -> tuple[Value, Value]:
    """Both exact, or both of 60 digits."""
    if isinstance(one, Fraction) and isinstance(two, Fraction) and _bits(one) + _bits(two) <= EXACT_BITS:
        return one, two
    return inexact(one), inexact(two)


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


def inexact(value: Value) -> Any:
    """The number of mpmath."""
    mp = context()
    return mp.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value


def divided(one: Value, two: Value) -> Value:
    """The quotient, or NotRead."""
    if two == 0:
        raise NotRead("a division by zero")
    one, two = alike(one, two)
    return one / two


def power(base: Value, exponent: Value) -> Value:
    """Exact where it is rational and not too long."""
    if base == 0:
        if isinstance(exponent, Fraction) and exponent >= 0:
            return Fraction(exponent == 0)
        raise NotRead("a power of zero")
    whole = isinstance(exponent, Fraction) and exponent.denominator == 1
    if whole and isinstance(base, Fraction) and abs(exponent) * _bits(base) <= EXACT_BITS:
        return base ** int(exponent)
    mp = context()
    size = mp.log(abs(inexact(base))) if base != 0 else mp.mpf(0)
    if not mp.isfinite(size) or not abs(inexact(exponent)) * max(abs(size), 1) < LARGEST:
        raise NotRead("a power that is too large")
    return mp.power(inexact(base), int(exponent) if whole else inexact(exponent))


def is_real(value: Value) -> bool:
    """It has no imaginary part."""
    return isinstance(value, Fraction) or context().im(value) == 0


def close(one: Value | None, two: Value | None) -> bool:
    """Equal; to 40 digits where they are not exact. No value equals none."""
    if one is None or two is None:
        return False
    if isinstance(one, Fraction) and isinstance(two, Fraction):
        return one == two
    mp = context()
    one, two = inexact(one), inexact(two)
    if not (mp.isfinite(one) and mp.isfinite(two)):
        return bool(one == two)
    size = max(abs(one), abs(two))
    return bool(abs(one - two) <= size * mp.mpf(10) ** -AGREED or size < mp.mpf(10) ** (5 - DIGITS))


def rounded(value: Value, decimals: int) -> Fraction | None:
    """A real value to some decimal places, or None for any other."""
    if isinstance(value, Fraction):
        return round(value, decimals)
    mp = context()
    if not is_real(value) or not abs(value) < MAX_ANGLE:
        return None
    return Fraction(int(mp.nint(mp.re(value) * 10**decimals)), 10**decimals)
