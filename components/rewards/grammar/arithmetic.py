"""Arithmetic, exact where it is rational with 60 digits elsewhere, and functions. What would take long is not read."""

from __future__ import annotations

import math
from collections.abc import Callable
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
MAX_FACTORIAL = 2000


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


def constant(name: str) -> Value:
    """What a name stands for."""
    mp = context()
    return {"pi": +mp.pi, "e": +mp.e, "i": mp.mpc(0, 1), "infinity": mp.inf}[name]


def call(name: str, found: list[Value]) -> Value:
    """What a function makes of its arguments.

    Raises:
        NotRead: it is not defined for them, or not computed.
    """
    if name in _EXACT:
        return _EXACT[name](*found)
    if name == "log" and len(found) == 2:
        return divided(call("ln", found[:1]), call("ln", found[1:]))
    if len(found) != 1:
        raise NotRead(f"{name} of {len(found)} arguments")
    mp, value = context(), inexact(found[0])
    name = {"log": "log10", "lg": "log10", "ln": "log"}.get(name, name)
    name = name.replace("arc", "a") if name.startswith("arc") else name
    if name == "abs":
        return abs(found[0])
    if name.startswith("log") and value == 0:
        raise NotRead("the logarithm of zero")
    if not abs(value) < (LARGEST if name in ("exp", "sinh", "cosh", "tanh") else MAX_ANGLE) and not name.startswith(
        "log"
    ):
        raise NotRead("a function of a number that is too large")
    try:
        return getattr(mp, name)(value)
    except (ValueError, ZeroDivisionError, AttributeError) as error:
        raise NotRead(f"{name} has no value there") from error


def _root(value: Value, degree: Value) -> Value:
    if not isinstance(degree, Fraction) or degree.denominator != 1 or not 0 < degree <= MAX_FACTORIAL:
        return power(value, divided(Fraction(1), degree))
    odd = degree % 2 == 1 and isinstance(value, Fraction) and value < 0
    return -power(-value, 1 / degree) if odd else power(value, 1 / degree)


def _whole(value: Value, largest: int) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1 or not 0 <= value <= largest:
        raise NotRead("it is defined for whole numbers of moderate size")
    return int(value)


def _factorial(value: Value) -> Value:
    if isinstance(value, Fraction) and value.denominator == 1:
        return Fraction(math.factorial(_whole(value, MAX_FACTORIAL)))
    if not abs(value) < MAX_FACTORIAL:
        raise NotRead("a factorial that is too large")
    return context().gamma(inexact(value) + 1)


def _binomial(above: Value, below: Value) -> Value:
    if isinstance(above, Fraction) and isinstance(below, Fraction) and above.denominator == below.denominator == 1:
        return Fraction(math.comb(_whole(above, 10 * MAX_FACTORIAL), _whole(below, 10 * MAX_FACTORIAL)))
    above, below = inexact(above), inexact(below)
    return divided(_factorial(above), _factorial(below) * _factorial(above - below))


def _extreme(choose: Callable[..., Value]) -> Callable[..., Value]:
    def chosen(*found: Value) -> Value:
        if not all(isinstance(value, Fraction) for value in found):
            raise NotRead("it is defined for rational numbers")
        return Fraction(choose(*found)) if len(found) > 1 else found[0]

    return chosen


_EXACT: dict[str, Callable[..., Value]] = {
    "root": _root,
    "factorial": _factorial,
    "binomial": _binomial,
    "floor": lambda value: Fraction(math.floor(_real(value))),
    "ceil": lambda value: Fraction(math.ceil(_real(value))),
    "max": _extreme(max),
    "min": _extreme(min),
    "gcd": lambda *found: Fraction(math.gcd(*(_whole(value, 10**DIGITS) for value in found))),
    "lcm": lambda *found: Fraction(math.lcm(*(_whole(value, 10**DIGITS) for value in found))),
}


def _real(value: Value) -> Value:
    if isinstance(value, Fraction):
        return value
    if not is_real(value) or not abs(value) < MAX_ANGLE:
        raise NotRead("a part of a number that is complex or too large")
    return context().re(value)
