"""Powers of a small base, and numbers in scientific notation."""

from __future__ import annotations

import random
from fractions import Fraction

from tests.benchmarks.styles.reference import Reference
from tests.benchmarks.styles.writing import decimal, grouped


def power(rng: random.Random, number: int) -> Reference:
    """Scientific notation and a power in turns."""
    answer, forms, wrong = _power(rng) if number % 2 else _scientific(rng)
    return Reference(
        answer=answer,
        forms={"same": answer} | forms,
        wrong=wrong,
        question="Write the product as a power.",
        other="5^{13}",
        variable=rng.choice(["x", "N"]),
        scalar=True,
    )


def _power(rng: random.Random) -> tuple[str, dict[str, str], dict[str, str]]:
    base, exponent = rng.choice([2, 3, 5, 7]), rng.randint(3, 12)
    value = base**exponent
    forms = {"value": str(value), "comma": grouped(str(value))}
    if exponent < 10:
        forms["nobrace"] = f"{base}^{exponent}"
    wrong = {
        "exponent": f"{base}^{{{exponent + 1}}}",
        "base": f"{base + 1}^{{{exponent}}}",
        "swapped": f"{exponent}^{{{base}}}",
        "juxtaposed": f"{base} {exponent}",
        "flat": f"{base}{exponent}",
        "product": str(base * exponent),
        "nearby": str(value + 1),
        "sign": str(-value),
        "neg_exponent": f"{base}^{{-{exponent}}}",
    }
    if exponent**base == value:
        del wrong["swapped"], wrong["product"]
    return f"{base}^{{{exponent}}}", forms, wrong


def _scientific(rng: random.Random) -> tuple[str, dict[str, str], dict[str, str]]:
    mantissa, exponent = Fraction(rng.randint(11, 99), 10), rng.randint(2, 9) * rng.choice([1, 1, -1])
    while mantissa.denominator == 1:
        mantissa = Fraction(rng.randint(11, 99), 10)
    digits, value = decimal(mantissa), mantissa * Fraction(10) ** exponent
    answer = rf"{digits} \times 10^{{{exponent}}}"
    forms = {"tight": rf"{digits}\times10^{{{exponent}}}", "cdot": rf"{digits} \cdot 10^{{{exponent}}}"}
    if exponent > -5:
        forms["value"] = decimal(value)
    if exponent > 0:
        forms |= {"nobrace": rf"{digits} \times 10^{exponent}", "e": f"{digits}e{exponent}"}
    wrong = {
        "exponent": rf"{digits} \times 10^{{{exponent + 1}}}",
        "neg_exponent": rf"{digits} \times 10^{{{-exponent}}}",
        "half": digits,
        "base": rf"{digits} \times 2^{{{exponent}}}",
        "nearby": rf"{decimal(mantissa + Fraction(1, 10))} \times 10^{{{exponent}}}",
        "sign": f"-{answer}",
        "flat": rf"{digits} \times 10{abs(exponent)}",
    }
    return answer, forms, wrong
