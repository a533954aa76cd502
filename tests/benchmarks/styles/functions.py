"""Logarithms, and trigonometric functions of angles that have no simple value."""

from __future__ import annotations

import math
import random

from tests.benchmarks.styles.reference import Reference, Variant, exact
from tests.benchmarks.styles.writing import over

FUNCTIONS = [("sin", "cos"), ("cos", "sin"), ("tan", "cot")]
VALUES = {"sin": math.sin, "cos": math.cos, "tan": math.tan}
DEGREES = [degrees for degrees in range(5, 86) if degrees % 15 and degrees % 18]


def logarithm(rng: random.Random, number: int) -> Reference:
    """To a base, natural, and a multiple of a natural one in turns."""
    base, argument, factor = rng.choice([2, 3, 5, 7]), rng.choice([6, 11, 13, 15, 10]), rng.randint(2, 6)
    variant = (
        lambda: _to_base(base, argument),
        lambda: _natural(argument),
        lambda: _multiple(factor, base),
    )[number % 3]()
    return exact(variant, "Solve the equation exactly.", rng.choice(["x", "t"]))


def _to_base(base: int, argument: int) -> Variant:
    forms = {
        "brace": rf"\log_{{{base}}} {argument}",
        "bracebrace": rf"\log_{{{base}}}{{{argument}}}",
        "paren": rf"\log_{{{base}}}({argument})",
        "change": rf"\frac{{\ln {argument}}}{{\ln {base}}}",
    }
    wrong = {
        "base": rf"\log_{{{base + 4}}} {argument}",
        "no_base": rf"\ln {argument}",
        "inverted": rf"\log_{{{argument}}} {base}",
        "nearby": rf"\log_{base} {argument + 1}",
        "quotient": "2" if (base, argument) == (5, 10) else over(argument, base),
        "sign": rf"-\log_{base} {argument}",
    }
    return rf"\log_{base} {argument}", math.log(argument, base), forms, wrong


def _natural(argument: int) -> Variant:
    forms = {
        "paren": rf"\ln({argument})",
        "brace": rf"\ln{{{argument}}}",
        "leftright": rf"\ln\left({argument}\right)",
        "log_e": rf"\log_e {argument}",
    }
    wrong = {
        "base": rf"\log_{{2}} {argument}",
        "nearby": rf"\ln {argument + 1}",
        "sign": rf"-\ln {argument}",
        "half": str(argument),
        "times10": rf"10\ln {argument}",
        "inverted": rf"\frac{{1}}{{\ln {argument}}}",
        "reciprocal_arg": rf"\ln\frac{{1}}{{{argument}}}",
    }
    return rf"\ln {argument}", math.log(argument), forms, wrong


def _multiple(factor: int, argument: int) -> Variant:
    forms = {
        "space": rf"{factor} \ln {argument}",
        "paren": rf"{factor}\ln({argument})",
        "value": rf"\ln {argument**factor}",
        "power_in": rf"\ln({argument}^{{{factor}}})",
    }
    inside = factor * argument
    wrong = {
        "base": rf"{factor}\log_2 {argument}",
        "nearby": rf"{factor + 1}\ln {argument}",
        "half": rf"\ln {argument}",
        "coef_in": rf"\ln {inside if inside != argument**factor else inside + 1}",
        "sign": rf"-{factor}\ln {argument}",
    }
    return rf"{factor}\ln {argument}", factor * math.log(argument), forms, wrong


def trigonometric(rng: random.Random, number: int) -> Reference:
    """Of degrees, of a fraction of pi, and an arc tangent in turns."""
    function, cofunction = rng.choice(FUNCTIONS)
    variant = (
        lambda: _of_degrees(function, cofunction, rng.choice(DEGREES)),
        lambda: _of_pi(function, cofunction, rng.choice([7, 9, 11, 13]), rng.randint(1, 3)),
        lambda: _arc_tangent(rng.choice([2, 3, 4, 5])),
    )[number % 3]()
    return exact(variant, "Give the exact value.", "x")


def _of_degrees(function: str, cofunction: str, degrees: int) -> Variant:
    forms = {
        "brace": rf"\{function} {degrees}^{{\circ}}",
        "paren": rf"\{function}({degrees}^\circ)",
        "leftright": rf"\{function}\left({degrees}^\circ\right)",
        "cofunction": rf"\{cofunction} {90 - degrees}^\circ",
    }
    wrong = {
        "function": rf"\{cofunction} {degrees}^\circ",
        "nearby": rf"\{function} {degrees + 1}^\circ",
        "half": rf"{degrees}^\circ",
        "radians": rf"\{function} {degrees}",
        "sign": rf"-\{function} {degrees}^\circ",
    }
    return rf"\{function} {degrees}^\circ", VALUES[function](math.radians(degrees)), forms, wrong


def _of_pi(function: str, cofunction: str, divisor: int, factor: int) -> Variant:
    if (divisor, factor) == (9, 3):
        factor = 2  # a third of pi has a simple value
    multiple = r"\pi" if factor == 1 else rf"{factor}\pi"
    answer = rf"\{function} \frac{{{multiple}}}{{{divisor}}}"
    forms = {
        "paren": rf"\{function}\left(\frac{{{multiple}}}{{{divisor}}}\right)",
        "dfrac": rf"\{function} \dfrac{{{multiple}}}{{{divisor}}}",
        "slash": rf"\{function}({multiple}/{divisor})",
    }
    wrong = {
        "function": rf"\{cofunction} \frac{{{multiple}}}{{{divisor}}}",
        "nearby": rf"\{function} \frac{{{multiple}}}{{{divisor + 1}}}",
        "half": rf"\frac{{{multiple}}}{{{divisor}}}",
        "no_pi": rf"\{function} {over(factor, divisor)}",
        "sign": f"-{answer}",
    }
    return answer, VALUES[function](factor * math.pi / divisor), forms, wrong


def _arc_tangent(argument: int) -> Variant:
    forms = {
        "paren": rf"\arctan({argument})",
        "inverse": rf"\tan^{{-1}} {argument}",
        "inverse_paren": rf"\tan^{{-1}}({argument})",
    }
    wrong = {
        "function": rf"\tan {argument}",
        "nearby": rf"\arctan {argument + 1}",
        "half": str(argument),
        "inverted": rf"\arctan \frac{{1}}{{{argument}}}",
        "sign": rf"-\arctan {argument}",
        "reciprocal": rf"\frac{{1}}{{\tan {argument}}}",
    }
    return rf"\arctan {argument}", math.atan(argument), forms, wrong
