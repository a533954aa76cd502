"""Numbers: whole, large, negative, decimal."""

from __future__ import annotations

import random
from fractions import Fraction

from tests.benchmarks.styles.reference import Reference
from tests.benchmarks.styles.writing import decimal, grouped, minus, over

COUNTED = ["apples", "dollars", "hours", "miles", "students", "cm", "minutes", "pounds", "cookies", "meters"]


def number_forms(rng: random.Random, digits: str) -> dict[str, str]:
    """A number in decimal digits, with separators of thousands and with zeros behind it."""
    forms = {"plain": digits}
    places = len(digits.lstrip("-").partition(".")[0])
    if places > 3:
        commas = grouped(digits)
        narrow = "{,\\!}" if rng.random() < 0.3 else ",\\!"
        forms |= {"comma": commas, "brace": commas.replace(",", "{,}"), "negthin": commas.replace(",", narrow)}
        if places > 4:
            forms["thin"] = commas.replace(",", "\\,")
    forms["trailing"] = digits + ("0" if "." in digits else rng.choice([".0", ".00"]))
    return forms


def number_wrong(rng: random.Random, value: Fraction) -> dict[str, str]:
    """Numbers that differ by a step, a sign, a power of ten or a digit."""
    digits, before = decimal(abs(value)), minus(value)
    step = Fraction(1, 10 ** len(digits.partition(".")[2]))
    wrong = {
        "nearby": decimal(value + rng.choice([1, -1]) * step * rng.choice([1, 1, 2])),
        "sign": decimal(-value),
        "times10": decimal(value * 10),
        "over10": decimal(value / 10),
        "digit_dropped": before + digits[:-1].rstrip("."),
    }
    more = str(rng.randint(1, 9))
    wrong["digit_added"] = before + (more + digits if "." in digits else digits + more)
    if len(digits) > 2 and "." not in digits and digits[0] != digits[1]:
        wrong["digits_swapped"] = before + digits[1] + digits[0] + digits[2:]
    return {name: text for name, text in wrong.items() if text not in ("", "-") and Fraction(text) != value}


def small_int(rng: random.Random, number: int) -> Reference:
    """A sum or a product of two numbers up to 12."""
    one, two = rng.randint(2, 12), rng.randint(2, 12)
    value, word = (one * two, "of") if number % 2 else (one + two, "and")
    return Reference(
        answer=str(value),
        wrong=number_wrong(rng, Fraction(value)) | {"juxtaposed": f"{one} {two}"},
        forms=number_forms(rng, str(value)),
        question=f"Tom has {one} bags {word} {two} apples. How many is that?",
        other=str(value + 3),
        variable=rng.choice("xnN"),
        unit=rng.choice(COUNTED[:9]),
        numeric=True,
        scalar=True,
    )


def large_int(rng: random.Random, number: int) -> Reference:
    """From a thousand to a billion, in one of two references with commas."""
    value = rng.randint(1000, 899_999) if number % 3 else rng.randint(10**6, 10**9)
    wrong = number_wrong(rng, Fraction(value))
    one = rng.randint(11, 99)
    two = value // one
    return Reference(
        answer=str(value) if number % 2 else grouped(str(value)),
        wrong=wrong | {"juxtaposed": f"{one} {two}"},
        forms=number_forms(rng, str(value)),
        question=f"A factory makes {one} boxes of about {two} parts. How many parts is that?",
        other=str(value + 1000),
        variable=rng.choice("xnN"),
        unit=rng.choice(COUNTED),
        numeric=value < 900_000,
        scalar=True,
    )


def negative(rng: random.Random, number: int) -> Reference:
    """Below zero, in one of five also with the minus sign of Unicode."""
    value = -rng.randint(2, 400)
    forms = number_forms(rng, str(value))
    return Reference(
        answer=str(value),
        forms=forms | {"unicode": f"−{-value}" if number % 5 == 0 else forms["plain"]},
        wrong=number_wrong(rng, Fraction(value)),
        question=f"What is {-value} less than zero?",
        other=str(value - 5),
        variable=rng.choice("xyt"),
        unit=rng.choice(["degrees", "dollars", "points"]),
        numeric=True,
        scalar=True,
    )


def decimal_number(rng: random.Random, number: int) -> Reference:
    """One to three decimal places; below 1 some references begin with the point."""
    value = Fraction(1)
    while value.denominator == 1:
        value = Fraction(rng.randint(11, 9999), rng.choice([10, 100, 1000]))
    digits = decimal(value)
    forms = number_forms(rng, digits)
    if value < 1:
        forms["nozero"] = digits[1:]
    return Reference(
        answer=digits[1:] if value < 1 and number % 4 == 0 else digits,
        forms=forms | {"fraction": over(value.numerator, value.denominator)},
        wrong=number_wrong(rng, value),
        question="How far did Ann walk in kilometers?",
        other=decimal(value + 1),
        variable=rng.choice("xd"),
        unit=rng.choice(["kilometers", "liters", "kg"]),
        numeric=True,
        scalar=True,
    )
