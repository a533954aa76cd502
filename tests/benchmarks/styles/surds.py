"""Square roots: alone, in a sum, in a fraction, one over a root."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from tests.benchmarks.styles.reference import Reference, Variant, exact
from tests.benchmarks.styles.writing import over

RADICANDS = [2, 3, 5, 6, 7, 10, 11, 13]


def surd(rng: random.Random, number: int) -> Reference:
    """The four variants take turns."""
    factor, radicand, term, divisor = (
        rng.randint(2, 9),
        rng.choice(RADICANDS),
        rng.randint(1, 9),
        rng.choice([2, 3, 4, 5]),
    )
    while math.gcd(factor, divisor) > 1:
        factor = rng.randint(2, 9)
    variant = (
        lambda: _multiple(factor, radicand),
        lambda: _sum(term, factor, radicand),
        lambda: _quotient(factor, radicand, divisor),
        lambda: _reciprocal(radicand),
    )[number % 4]()
    question = "Find the length of the diagonal in simplest radical form."
    found = exact(variant, question, rng.choice(["x", "d", "AB"]))
    return replace(found, wrong=found.wrong | {"times10": rf"10\cdot {found.answer}"})


def _root(radicand: int) -> str:
    return rf"\sqrt{{{radicand}}}"


def _multiple(factor: int, radicand: int) -> Variant:
    root = _root(radicand)
    answer = f"{factor}{root}"
    forms = {
        "space": f"{factor} {root}",
        "unsimplified": _root(factor * factor * radicand),
        "cdot": rf"{factor}\cdot{root}",
    }
    if radicand < 10:
        forms["nobrace"] = rf"{factor}\sqrt{radicand}"
    next_radicand = radicand + 1 if math.isqrt(radicand + 1) ** 2 != radicand + 1 else radicand + 2
    wrong = {
        "half": root,
        "coefficient_only": str(factor),
        "nearby": f"{factor + 1}{root}",
        "radicand": f"{factor}{_root(next_radicand)}",
        "sign": f"-{answer}",
        "dropped_root": str(factor * radicand),
        "juxtaposed": f"{factor} {radicand}",
    }
    return answer, factor * radicand**0.5, forms, wrong


def _sum(term: int, factor: int, radicand: int) -> Variant:
    root = _root(radicand)
    forms = {
        "swapped": f"{factor}{root}+{term}",
        "unsimplified": f"{term}+{_root(factor * factor * radicand)}",
        "space": f"{term} + {factor}{root}",
    }
    wrong = {
        "half": f"{factor}{root}",
        "half2": str(term),
        "conjugate": f"{term}-{factor}{root}",
        "nearby": f"{term + 1}+{factor}{root}",
        "swapped_coef": f"{factor if factor != term else factor + 1}+{term}{root}",
    }
    return f"{term}+{factor}{root}", term + factor * radicand**0.5, forms, wrong


def _quotient(factor: int, radicand: int, divisor: int) -> Variant:
    root = _root(radicand)
    answer = rf"\frac{{{factor}{root}}}{{{divisor}}}"
    forms = {
        "coef": f"{over(factor, divisor)}{root}",
        "unsimplified": rf"\frac{{{_root(factor * factor * radicand)}}}{{{divisor}}}",
        "dfrac": answer.replace(r"\frac", r"\dfrac"),
        "slash": f"{factor}{root}/{divisor}",
    }
    wrong = {
        "inverted": rf"\frac{{{divisor}{root}}}{{{factor}}}",
        "half": f"{factor}{root}",
        "denominator_off": rf"\frac{{{factor}{root}}}{{{divisor + 1}}}",
        "under_root": rf"\sqrt{{{over(factor * radicand, divisor)}}}",
        "sign": f"-{answer}",
    }
    return answer, factor * radicand**0.5 / divisor, forms, wrong


def _reciprocal(radicand: int) -> Variant:
    root = _root(radicand)
    answer = rf"\frac{{{root}}}{{{radicand}}}"
    forms = {
        "recip": rf"\frac{{1}}{{{root}}}",
        "root_of_frac": rf"\sqrt{{{over(1, radicand)}}}",
        "slash": f"{root}/{radicand}",
    }
    wrong = {
        "inverted": root,
        "half": over(1, radicand),
        "sign": f"-{answer}",
        "nearby": rf"\frac{{{root}}}{{{radicand + 1}}}",
    }
    return answer, radicand**-0.5, forms, wrong
