"""What is not the number of the reference. Every text has one meaning at most, and it is not the reference's value."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from components.audit.grammar.base import Kinds, filled, refused
from components.audit.hacks import Target
from components.audit.reference import bare, integer, number, operands

KINDS: Kinds = ("number", "expression", "text")
SEPARATORS = (" ", ", ", "; ", r"\ ", r"\,", r"\;", r"\quad ", "{}", r" \\ ", " & ", " and ", "\t", "  ", "\u00a0")
"""What may stand between two numbers that nothing combines."""
BASES = (2, 3, 5, 7, 8, 9, 11, 12, 16)


def plain(target: Target) -> tuple[str, Fraction] | None:
    """The reference as a number: how it is written, and its value."""
    value = number(target.prompt.answer)
    return None if value is None else (bare(target.prompt.answer), value)


def whole(target: Target) -> int | None:
    """The reference as a number without a fraction."""
    return integer(target.prompt.answer)


def parts(value: int) -> Iterator[tuple[int, int]]:
    """Two numbers whose sum, difference or product is ``value``."""
    for one in (1, 2, value // 2):
        if 0 < one < value:
            yield value - one, one
    yield value + 3, 3
    for factor in (2, 3, 5, 7):
        if value > factor and value % factor == 0:
            yield value // factor, factor


def juxtaposed(target: Target) -> Iterator[str]:
    """Two numbers side by side, of which nothing says that they be combined."""
    value = whole(target)
    if value is None:
        return
    given = [(int(one), int(two)) for one, two in pairwise(operands(target.prompt.text))]
    for one, two in [*given, *parts(abs(value))]:
        for left, right in ((one, two), (two, one)):
            if int(f"{left}{right}") != abs(value):  # "1 000" is one number
                yield from (f"{left}{between}{right}" for between in SEPARATORS)


def operand(target: Target) -> Iterator[str]:
    """A number of the question, or all of them."""
    given = operands(target.prompt.text)
    if (known := plain(target)) is not None:
        yield from (text for text in given if int(text) != known[1])
    if known is not None and len(given) > 1 and int("".join(given)) != abs(known[1]):
        yield from (between.join(given) for between in (", ", " ", "; "))


def uncalculated(target: Target) -> Iterator[str]:
    """A calculation in place of its result."""
    value = whole(target)
    if value is None or target.answers == "expression":  # there the calculation equals its result
        return
    one, two, three = value - 7, value + 11, value * 2
    yield from filled("@ + 7  @+7  # - 11  #-11", str(one), str(two))
    yield from (f"1*{value + 1} - 1", f"{one} plus 7")
    yield from (f"{three} - {abs(value)}" if value > 0 else f"{one} + 7", rf"({one}) + 7", f"5 + {value - 5}")


def rebased(target: Target) -> Iterator[str]:
    """Its digits in another base."""
    value = whole(target)
    if value is None or not 9 < value < 10**12:
        return
    for base in BASES:
        if all(int(digit) < base for digit in str(value)):
            yield from (f"{value}_{base}", f"{value}_{{{base}}}", f"({value})_{{{base}}}", f"{value} in base {base}")
    yield f"0x{value}"


def near(target: Target) -> Iterator[str]:
    """Another value that looks like it."""
    value = whole(target)
    if value is None:
        yield from _near_fraction(target)
        return
    digits = str(abs(value))
    swapped = [digits[:i] + digits[i + 1] + digits[i] + digits[i + 2 :] for i in range(len(digits) - 1)]
    others = [value + 1, value - 1, -value, 10 * value, 100 * value, 1000 * value, value + 2, value + 10, value - 10]
    others += [*map(int, swapped), int(f"1{digits}"), int(f"{digits}1"), int(digits[::-1]), int(digits[1:] or "0")]
    others += [int(digits[:-1] or "0"), int(f"{digits}{digits[-1]}")]
    if value % 10 == 0:
        others.append(value // 10)
    yield from (str(other) for other in dict.fromkeys(others) if other != value)
    if abs(value) < 1000:  # of a larger one a tolerance might allow it
        yield from (f"{value}.5", f"{value}.7", f"{value}.25")
    if value:
        yield f"0.{digits}"
        yield from (written(Fraction(value, 100)), written(Fraction(value, 10)))


def _near_fraction(target: Target) -> Iterator[str]:
    if (known := plain(target)) is None or not known[1]:
        return
    value = known[1]
    above, below = value.numerator, value.denominator
    others = [value + 1, -value, value * 10, value / 10, value * 100, value / 100, Fraction(below, above), value + 2]
    others += [Fraction(above), Fraction(below), Fraction(int(value))]
    if max(abs(above), below) < 1000:  # of another one a tolerance might allow it
        others += [Fraction(above + 1, below), Fraction(above, below + 1)]
    yield from (written(other) for other in dict.fromkeys(others) if other != value)


def rounding(target: Target) -> Iterator[str]:
    """Another value that is the reference's once it is rounded; none that a tolerance of 1/4000 might allow."""
    if (known := plain(target)) is None or "/" in known[0] or "\\" in known[0]:
        return
    step = Fraction(1, 10 ** len(known[0].partition(".")[2].rstrip()))
    for tenths in (2, 3, 4, -2, -3, -4):
        if abs(step * tenths / 10) * 4000 >= abs(known[1]):
            yield written(known[1] + step * tenths / 10)


def written(value: Fraction | int) -> str:
    """As a whole number, or a decimal that is exact, or else a fraction."""
    exact = Fraction(value)
    if exact.denominator == 1:
        return str(exact.numerator)
    for places in range(1, 9):
        if (exact * 10**places).denominator == 1:
            return f"{float(exact):.{places}f}"
    return f"{exact.numerator}/{exact.denominator}"


CLASSES = (
    refused(
        KINDS, "numbers side by side", juxtaposed, "read one number; several with nothing between them are no answer"
    ),
    refused(
        KINDS,
        "operands of the question",
        operand,
        "compare with the reference alone, never with what stands in the question",
        "https://github.com/jsboige/CoursIA/pull/11312",
    ),
    refused(KINDS, "calculation not carried out", uncalculated, "an answer that still has to be calculated is none"),
    refused(KINDS, "other base", rebased, "read the base: the same digits are another number"),
    refused(KINDS, "value that rounds to the number", rounding, "compare exact values; round neither side"),
    refused(KINDS, "near miss of a number", near, "compare exact values; a tolerance is for decimals"),
)
