"""Fractions, and multiples of pi."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from tests.benchmarks.styles.reference import Reference, proper_fraction
from tests.benchmarks.styles.writing import decimal, minus, over, terminates


def fraction(rng: random.Random, number: int) -> Reference:
    """Above 1 and below in turns, one of five negative."""
    value = proper_fraction(rng, improper=number % 2 == 1) * (-1 if number % 5 == 0 else 1)
    top, bottom = value.numerator, value.denominator
    answer = rng.choice([over(top, bottom), over(top, bottom), over(top, bottom, "dfrac"), f"{top}/{bottom}"])
    return Reference(
        answer=answer,
        forms=_fraction_forms(rng, value),
        wrong=_fraction_wrong(rng, value),
        question="What fraction of the cake is left?",
        other=over(top + 2 * bottom, bottom),
        variable=rng.choice(["x", "p", "P(A)"]),
        scalar=True,
    )


def _fraction_forms(rng: random.Random, value: Fraction) -> dict[str, str]:
    top, bottom = value.numerator, value.denominator
    forms = {
        "frac": over(top, bottom),
        "dfrac": over(top, bottom, "dfrac"),
        "tfrac": over(top, bottom, "tfrac"),
        "slash": f"{top}/{bottom}",
        "negnum": rf"\frac{{{top}}}{{{bottom}}}",
    }
    if terminates(value):
        forms["decimal"] = decimal(value)
    if abs(top) < 10 and bottom < 10:
        forms["short"] = rf"{minus(value)}\frac{abs(top)}{bottom}"
    if abs(value) > 1:
        whole, rest = divmod(abs(top), bottom)
        forms["mixed"] = rf"{minus(value)}{whole}{rng.choice(['', ' ', ' '])}\frac{{{rest}}}{{{bottom}}}"
    return forms


def _fraction_wrong(rng: random.Random, value: Fraction) -> dict[str, str]:
    top, bottom = value.numerator, value.denominator
    wrong = {
        "nearby": over(top + 1 or top + 2, bottom),
        "sign": over(-top, bottom),
        "inverted": over(-bottom if value < 0 else bottom, abs(top)),
        "times10": over(10 * top, bottom),
        "over10": over(top, 10 * bottom),
        "numerator_only": str(top),
        "juxtaposed": f"{abs(top)} {bottom}",
        "denominator_off": over(top, bottom + 1),
        "juxta_noslash": f"{top}{bottom}",
    }
    if not terminates(value):
        wrong["approximation"] = f"{float(value):.{rng.choice([2, 3])}f}"
    if abs(value) > 1 and bottom < 10:
        whole, rest = divmod(abs(top), bottom)
        wrong["mixed_as_product"] = rf"{minus(value)}{whole}\cdot\frac{{{rest}}}{{{bottom}}}"
    return wrong


def pi(rng: random.Random, number: int) -> Reference:
    """A whole multiple of pi or a fraction of it."""
    top, bottom = rng.randint(2, 60), rng.choice([2, 3, 4, 5, 6])
    share = Fraction(top, bottom)
    if number % 2 or share.denominator == 1:
        answer, value = rf"{top}\pi", top * math.pi
        forms, wrong = _multiple_of_pi(top)
    else:
        written = [rf"\frac{{{share.numerator}\pi}}{{{share.denominator}}}", rf"{over(*share.as_integer_ratio())}\pi"]
        answer = rng.choice(written) if share.numerator > 1 else rf"\frac{{\pi}}{{{share.denominator}}}"
        value = share.numerator / share.denominator * math.pi
        forms, wrong = _fraction_of_pi(share)
    return Reference(
        answer=answer,
        forms={"same": answer} | forms,
        wrong=wrong
        | {
            "approximation": f"{value:.2f}",
            "sign": f"-{answer}",
            "squared": answer.replace(r"\pi", r"\pi^2"),
            "times10": rf"10\cdot{answer}",
        },
        question="Find the area of the circle in terms of pi.",
        other=f"{answer}+1",
        variable=rng.choice(["A", "S", "V"]),
        scalar=True,
    )


def _multiple_of_pi(factor: int) -> tuple[dict[str, str], dict[str, str]]:
    forms = {"space": rf"{factor} \pi", "cdot": rf"{factor} \cdot \pi", "unicode": f"{factor}π"}
    wrong = {
        "half": str(factor),
        "half2": r"\pi",
        "nearby": rf"{factor + 1}\pi",
        "over10": rf"\frac{{{factor}\pi}}{{10}}",
    }
    return forms, wrong


def _fraction_of_pi(share: Fraction) -> tuple[dict[str, str], dict[str, str]]:
    top, bottom = share.as_integer_ratio()
    forms = {
        "inside": rf"\frac{{{top}\pi}}{{{bottom}}}",
        "outside": rf"\frac{{{top}}}{{{bottom}}}\pi",
        "slash": rf"{top}\pi/{bottom}",
        "dfrac": rf"\dfrac{{{top}\pi}}{{{bottom}}}",
    }
    if terminates(share):
        forms["decimal_coef"] = rf"{decimal(share)}\pi"
    wrong = {
        "half": over(top, bottom),
        "nearby": rf"\frac{{{top}\pi}}{{{bottom + 1}}}",
        "pi_below": rf"\frac{{{top}}}{{{bottom}\pi}}",
    }
    if top > 1:
        wrong = {"inverted": rf"\frac{{{bottom}\pi}}{{{top}}}"} | wrong
    return forms, wrong
