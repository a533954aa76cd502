"""Polynomials of one variable and of two, complex numbers."""

from __future__ import annotations

import random

from tests.benchmarks.styles.reference import Reference, sign
from tests.benchmarks.styles.writing import Term, spaced, total


def poly1(rng: random.Random, number: int) -> Reference:
    """A square with two whole roots, times 1 to 3."""
    name = rng.choice("xxxtn")
    one = rng.randint(1, 9)
    two = -rng.randint(1, 9) if number % 2 else rng.randint(1, 9)
    while one + two == 0 or one == two:
        one = rng.randint(1, 9)
    factor = rng.choice([1, 1, 2, 3])
    square, linear, constant = factor, factor * (one + two), factor * one * two

    def written(a: int, b: int, c: int) -> str:
        return total([(a, f"{name}^2"), (b, name), (c, "")])

    answer = written(square, linear, constant)
    leading = "" if factor == 1 else str(factor)
    swapped = (constant, linear) if constant != linear else (linear + 1, constant)
    return Reference(
        answer=answer,
        forms={
            "same": answer,
            "spaces": spaced(answer),
            "brace": answer.replace("^2", "^{2}"),
            "reordered": total([(constant, ""), (linear, name), (square, f"{name}^2")]),
            "factored": f"{leading}({name}{one:+d})({name}{two:+d})",
        },
        wrong={
            "sign": written(-square, -linear, -constant),
            "nearby": written(square, linear, constant + 1),
            "missing_term": written(square, 0, constant),
            "other_variable": answer.replace(name, "z"),
            "half": f"{name}{one:+d}",
            "swapped_coef": written(square, *swapped),
            "root_sign": f"{leading}({name}{-one:+d})({name}{-two:+d})",
            "exponent": answer.replace("^2", "^3"),
            "equation": f"{answer}=0",
        },
        question="Expand the product.",
        other=written(square, linear + 2, constant),
        variable=f"f({name})",
    )


def poly2(rng: random.Random, number: int) -> Reference:
    """A form of second degree, a linear one, one of third degree with a constant, in turns."""
    one, two, three = rng.randint(1, 9), rng.randint(2, 9) * sign(rng), rng.randint(1, 9) * sign(rng)
    variants: list[list[Term]] = [
        [(one, "x^2"), (two, "xy"), (three, "y^2")],
        [(one, "x"), (two, "y")],
        [(one, "x^2y"), (two, "y^3"), (three, "")],
    ]
    variant = number % 3
    terms = variants[variant]
    answer = total(terms)
    forms = {
        "same": answer,
        "spaces": spaced(answer),
        "brace": answer.replace("^2", "^{2}").replace("^3", "^{3}"),
        "reordered": total(terms[::-1]),
    }
    if variant == 0:
        forms["yx"] = answer.replace("xy", "yx")
    if variant == 2:
        forms["cdot"] = answer.replace("x^2y", "x^2 y" if one == 1 else r"\cdot x^2y")
    wrong = {
        "sign": total([(-coefficient, factor) for coefficient, factor in terms]),
        "nearby": total([(one + 1, terms[0][1]), *terms[1:]]),
        "missing_term": total(terms[1:]),
        "exponent": answer.replace("x", "x^3") if variant == 1 else answer.replace("x^2", "x^4"),
    }
    if variant == 2 or one != (three, two)[variant]:
        wrong["variables_swapped"] = answer.translate(str.maketrans("xy", "yx"))
    last, factor = terms[-1]
    return Reference(
        answer=answer,
        forms=forms,
        wrong=wrong,
        question="Simplify the expression.",
        other=total([*terms[:-1], (last + (1 if last != -1 else 3), factor)]),
        variable=rng.choice(["A", "P(x,y)", "f(x,y)"]),
    )


def complex_number(rng: random.Random, number: int) -> Reference:
    """One of six has no real part."""
    real, imaginary = rng.randint(1, 12) * sign(rng), rng.randint(1, 12) * sign(rng)
    if number % 6 == 0:
        real = 0

    def written(a: int, b: int) -> str:
        return total([(a, ""), (b, "i")])

    answer = written(real, imaginary)
    forms = {"same": answer, "spaces": spaced(answer)}
    if real:
        forms["reordered"] = total([(imaginary, "i"), (real, "")])
    swapped = (imaginary, real) if real and real != imaginary else (real + 1, imaginary)
    added = total([(real, ""), (imaginary, "")]) if real and real + imaginary else str(imaginary)
    squares = real * real + imaginary * imaginary
    return Reference(
        answer=answer,
        forms=forms,
        wrong={
            "conjugate": written(real, -imaginary),
            "sign": written(-real, -imaginary),
            "nearby": written(real, imaginary + 1 if imaginary != -1 else 2),
            "half": written(0, imaginary) if real else "i^2",
            "swapped": written(*swapped),
            "no_i": added,
            "modulus": rf"\sqrt{{{squares}}}",
            "tuple_instead": f"({real},{imaginary})",
        },
        question="Compute the product of the complex numbers.",
        other=written(real + 20, imaginary),
        variable="z",
    )


def line(rng: random.Random, number: int) -> Reference:
    """The equation of a line, solved for y in two of three references."""
    slope, intercept = rng.randint(2, 9) * sign(rng), rng.randint(1, 12) * sign(rng)

    def solved(m: int, b: int, left: str = "y") -> str:
        return f"{left}={total([(m, 'x'), (b, '')])}"

    standard = f"{total([(slope, 'x'), (-1, 'y'), (intercept, '')])}=0"
    answer = solved(slope, intercept) if number % 3 else standard
    variables = total([(slope, "x"), (-1, "y")])
    swapped = (intercept, slope) if intercept != slope else (intercept + 13, slope)
    return Reference(
        answer=answer,
        forms={
            "same": answer,
            "spaces": f"y = {spaced(total([(slope, 'x'), (intercept, '')]))}",
            "reordered": f"y={total([(intercept, ''), (slope, 'x')])}",
            "standard": standard,
            "standard_rhs": f"{variables}={-intercept}",
            "swapped_sides": f"{total([(slope, 'x'), (intercept, '')])}=y",
            "scaled": f"{total([(2 * slope, 'x'), (-2, 'y'), (2 * intercept, '')])}=0",
        },
        wrong={
            "sign": solved(-slope, intercept),
            "intercept_sign": solved(slope, -intercept),
            "nearby": solved(slope, intercept + 1 if intercept != -1 else 2),
            "inverted": f"x={total([(slope, 'y'), (intercept, '')])}",
            "slope_only": str(slope),
            "swapped_coef": solved(*swapped),
            "constant_side": f"{variables}={intercept}",
            "other_variable": solved(slope, intercept, "z"),
        },
        question="Find an equation of the line.",
        other=solved(slope, intercept + 20),
    )
