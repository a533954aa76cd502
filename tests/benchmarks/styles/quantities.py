"""Numbers of something: money, per cent, units, angles."""

from __future__ import annotations

import random
from fractions import Fraction

from tests.benchmarks.styles.numbers import number_forms, number_wrong
from tests.benchmarks.styles.reference import Reference
from tests.benchmarks.styles.writing import decimal, grouped

UNITS = [
    ("cm", "m"),
    ("inches", "feet"),
    ("minutes", "hours"),
    ("meters", "kilometers"),
    ("hours", "days"),
    ("feet", "yards"),
    ("grams", "kilograms"),
    ("square inches", "square feet"),
]
"""A unit, and another one of the same dimension."""


def money(rng: random.Random, number: int) -> Reference:
    """Whole dollars, or dollars and cents."""
    value = Fraction(rng.randint(2, 4000)) if number % 2 else Fraction(rng.randint(105, 300000), 100)
    cents = f"{float(value):.2f}"
    digits = decimal(value) if number % 2 else cents
    answer = rng.choice([digits, f"\\${digits}", grouped(digits), f"\\${grouped(digits)}"])
    usual = {name: text for name, text in number_forms(rng, digits).items() if name in ("plain", "comma", "brace")}
    signed = {"dollar": f"\\${digits}", "dollar_comma": f"\\${grouped(digits)}", "cents": f"\\${grouped(cents)}"}
    wrong = number_wrong(rng, value)
    if "\\$" in answer:
        wrong["other_unit"] = f"{digits}\\text{{ cents}}"
    return Reference(
        answer=answer,
        forms=usual | signed,
        wrong=wrong,
        question=f"A shirt costs ${rng.randint(5, 50)}. How much does Ben pay in dollars?",
        other=decimal(value + 2),
        variable=rng.choice("xC"),
        unit="dollars",
        numeric=True,
        scalar=True,
    )


def percent(rng: random.Random, number: int) -> Reference:
    """Per cent, the sign written or not."""
    value = Fraction(rng.randint(1, 99)) if number % 2 else Fraction(rng.randint(11, 999), 10)
    digits = decimal(value)
    return Reference(
        answer=rng.choice([digits, f"{digits}\\%", f"{digits}\\%"]),
        forms={
            "plain": digits,
            "percent": f"{digits}\\%",
            "percent_sp": f"{digits} \\%",
            "word": f"{digits}\\text{{ percent}}",
        },
        wrong=number_wrong(rng, value),
        question="What percent of the students passed?",
        other=decimal(value + 3),
        variable=rng.choice("xp"),
        numeric=True,
        scalar=True,
    )


def unit(rng: random.Random, number: int) -> Reference:
    """With a unit that the question asks for; every second reference names it."""
    value = rng.randint(2, 300)
    wanted, foreign = rng.choice(UNITS)
    named = number % 2 == 1
    forms = {
        "bare": str(value),
        "text": f"{value}\\text{{ {wanted}}}",
        "mathrm": f"{value}\\ \\mathrm{{{wanted.replace(' ', '~')}}}",
        "tie": f"{value}~\\text{{{wanted}}}",
    }
    if wanted == "cm":
        forms["plainunit"] = f"{value} cm"
    wrong = number_wrong(rng, Fraction(value))
    if named:
        wrong["other_unit"] = f"{value}\\text{{ {foreign}}}"
    return Reference(
        answer=forms["text"] if named else str(value),
        forms=forms,
        wrong=wrong,
        question=f"What is the length in {wanted}?",
        other=str(value + 4),
        variable="x",
        numeric=True,
        scalar=True,
    )


def angle(rng: random.Random, number: int) -> Reference:
    """Degrees, the sign written or not."""
    value = rng.randint(5, 175)
    named = number % 2 == 1
    other_unit = f"{value}\\text{{ radians}}" if named else str(value + 90)
    return Reference(
        answer=f"{value}^\\circ" if named else str(value),
        forms={
            "bare": str(value),
            "circ": f"{value}^\\circ",
            "circb": f"{value}^{{\\circ}}",
            "word": f"{value}\\text{{ degrees}}",
        },
        wrong=number_wrong(rng, Fraction(value)) | {"other_unit": other_unit},
        question="What is the degree measure of angle A?",
        other=str(value + 7),
        variable=rng.choice(["\\theta", "x", "\\angle A"]),
        scalar=True,
    )
