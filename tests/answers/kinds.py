"""References of every kind, with other ways to write them and with what is nearly the same.

Forms are separated by two spaces or a new line; ``<a>`` is a drawn value.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

Values = Mapping[str, object]


class Kind(NamedTuple):
    """How a reference is drawn, and the forms of what says the same and of what does not."""

    draw: Callable[[random.Random], Values]
    reference: str
    right: str
    wrong: str


def forms(template: str, values: Values) -> list[str]:
    """The forms of a template with the drawn values in them."""
    written = [form for form in re.split(r"\s{2,}|\n", template.strip()) if form]
    return [re.sub(r"<(\w+)>", lambda found: str(values[found[1]]), form) for form in written]


def _integer(rng: random.Random) -> Values:
    n = rng.randrange(20, 999)
    a = rng.randrange(1, n)
    return {"n": n, "more": n + 1, "less": n - 1, "a": a, "b": n - a}


def _decimal(rng: random.Random) -> Values:
    text = f"{rng.randrange(1, 400)}.{rng.randrange(11, 99)}{rng.randrange(1, 9)}"
    value = Fraction(text)
    joined, other = text.replace(".", ""), f"{float(value) + 0.01:.3f}"
    return {"d": text, "p": value.numerator, "q": value.denominator, "other": other, "joined": joined}


def _thousands(rng: random.Random) -> Values:
    n = rng.randrange(10**6, 10**9)
    first, middle, last = f"{n:,}".split(",")
    return {"n": n, "a": first, "b": middle, "c": last, "more": f"{n + 1000:,}"}


def _fraction(rng: random.Random) -> Values:
    q = rng.randrange(3, 10)
    p = rng.choice([p for p in range(2, 10) if math.gcd(p, q) == 1])
    return {"p": p, "q": q, "pp": 2 * p, "qq": 2 * q, "more": p + 1}


def _mixed(rng: random.Random) -> Values:
    n, q = rng.randrange(2, 30), rng.randrange(3, 10)
    p = rng.choice([p for p in range(1, q) if math.gcd(p, q) == 1])
    return {"n": n, "p": p, "q": q, "all": n * q + p, "product": n * p, "more": n + 1}


def _percentage(rng: random.Random) -> Values:
    n = rng.randrange(2, 98)
    return {"n": n, "more": n + 1, "hundredth": f"{n / 100:.2f}"}


def _money(rng: random.Random) -> Values:
    n, cents = rng.randrange(1000, 9999), rng.randrange(10, 98)
    return {"n": n, "grouped": f"{n:,}", "c": cents, "d": cents + 1}


def _radical(rng: random.Random) -> Values:
    a, b = rng.randrange(2, 60), rng.choice([2, 3, 5, 6, 7, 11, 13])
    return {"a": a, "b": b, "inside": a * a * b, "product": a * b, "more": a + 1, "other": b + 2}


def _two(low: int, high: int) -> Callable[[random.Random], Values]:
    def draw(rng: random.Random) -> Values:
        a, b = sorted(rng.sample(range(low, high), 2))
        return {"a": a, "b": b, "more": b + 1, "after": a + 1, "twice": 2 * a, "sum": a + b}

    return draw


def _three(rng: random.Random) -> Values:
    a, b, c = rng.sample(range(-20, 40), 3)
    return {"a": a, "b": b, "c": c, "more": c + 60}


def _base(rng: random.Random) -> Values:
    base = rng.randrange(5, 9)
    digits = "".join(str(rng.randrange(1, base)) for _ in range(rng.randrange(2, 5)))
    name = ("five", "six", "seven", "eight")[base - 5]
    return {"d": digits, "b": base, "name": name, "more": base + 1, "value": int(digits, base)}


def _time(rng: random.Random) -> Values:
    hour, minute = rng.randrange(1, 10), rng.randrange(10, 50)
    return {"h": hour, "m": minute, "after": hour + 1, "more": minute + 1}


def _measured(rng: random.Random) -> Values:
    n = rng.randrange(2, 300)
    short, long = rng.choice(
        [("cm", "centimeters"), ("km", "kilometers"), ("kg", "kilograms"), ("mph", "miles per hour")]
    )
    return {"n": n, "u": short, "long": long, "more": n + 1}


def _scientific(rng: random.Random) -> Values:
    mantissa, power = f"{rng.randrange(1, 9)}.{rng.randrange(1, 9)}", rng.randrange(3, 9)
    plain = int(Fraction(mantissa) * 10**power)
    return {"m": mantissa, "k": power, "plain": plain, "grouped": f"{plain:,}", "more": power + 1}


NUMERIC = {
    "integer": Kind(
        _integer, "<n>", "<n>  <n>.0  +<n>  <n>.00  0<n>  <n> apples  6*<n>/6 = <n>",
        r"""<more>  <less>  -<n>  <n>0  <n>.5  <a> <b>  <a>\,<b>  <a> \quad <b>  ±<n>  \pm <n>  x <= <n>  != <n>
        \neq <n>  not <n>  half of <n>  <n> dozen  <n>x  <n>i  x^2+<n>  <more>=<n>  <n> or <more>  <n>, <more>  <n>!
        <n>^2  <n> squared  <n> million  <n> and a half  twice <n>  \sqrt{<n>}  1/<n>  > <n>  <n>_8  <n> base 7
        at least <n>  <n> is wrong  less than <n>  <n>-<more>  <n> + 1  (1, <n>)  <n> minus 1  <n> ± 1  \log <n>
        <n> thousand  anything but <n>  <n> times 2  <n> or more  ~~<n>~~  up to <n>  <n>\pi  <n> mod 5  <n>,<n>""",
    ),
    "negative": Kind(
        _integer, "-<n>", "-<n>  \u2212<n>  - <n>  -<n>.0  (-<n>)  -(<n>)  \u2013<n>",
        "<n>  -<more>  --<n>  -<n>0  5-<n>  ±<n>  |-<n>|  minus -<n>",
    ),
    "decimal": Kind(
        _decimal, "<d>", r"<d>  <d>0  <p>/<q>  \frac{<p>}{<q>}  +<d>  <d>00",
        """<other>  <joined>  -<d>  <d>.1  <d> or <other>  <d>x"""
    ),
    "thousands": Kind(
        _thousands, "<a>,<b>,<c>",
        r"""<n>  <a>,<b>,<c>  <a>{,}<b>{,}<c>  <a>,\!<b>,\!<c>  <a>\,<b>\,<c>  <a> <b> <c>  <a>'<b>'<c>  <a>.<b>.<c>
        <a>\ <b>\ <c>  <a>~<b>~<c>  <n>.00  <a>,<b>,<c>.00"""
        "  <a>\u00a0<b>\u00a0<c>  <a>\u2009<b>\u2009<c>",
        r"<more>  <a>  <c>  <a> + <b> + <c>  <a>,<b>,<c>,000  <n>0  <a>, <b>, <c>  <a> \quad <b> \quad <c>  <a>,<b>",
    ),
    "fraction": Kind(
        _fraction, r"\frac{<p>}{<q>}",
        r"""<p>/<q>  \frac{<p>}{<q>}  \dfrac{<p>}{<q>}  \tfrac{<p>}{<q>}  \frac<p><q>  \frac<p>{<q>}  <pp>/<qq>
        <p> / <q>""",
        r"""<q>/<p>  <more>/<q>  <p>  \frac{<p>}{1<q>}  <p> <q>  <p><q>  -<p>/<q>  1<p>/<q>  <p>/<q>x
        \frac{<p>}{<q>}, <p>""",
    ),
    "mixed": Kind(
        _mixed, r"<n>\frac{<p>}{<q>}",
        r"""<n>\frac{<p>}{<q>}  <n> <p>/<q>  \frac{<all>}{<q>}  <all>/<q>  <n>\dfrac{<p>}{<q>}
        <n> \frac{<p>}{<q>}  <n>\frac<p><q>""",
        r"<n>  \frac{<product>}{<q>}  <more>\frac{<p>}{<q>}  \frac{<p>}{<q>}  <n> <p> <q>  -<n>\frac{<p>}{<q>}",
    ),
    "percentage": Kind(
        _percentage, "<n>%", r"<n>%  <n>\%  <n> percent  <n> %  <n>\text{ percent}  <n>  <n> per cent",
        "<more>%  <hundredth>  <n>% of x  <n>% or <more>%  1<n>%",
    ),
    "money": Kind(
        _money, "$<grouped>.<c>",
        r"""$<grouped>.<c>  \$<grouped>.<c>  <n>.<c>  <n>.<c> dollars  <grouped>.<c> dollars  $ <grouped>.<c>
        USD <n>.<c>""",
        r"$<grouped>.<d>  $<n>  -$<grouped>.<c>  $<grouped>.<c> or $5  <c>  $<grouped>",
    ),
    "measured": Kind(
        _measured, "<n> <u>",
        r"<n> <u>  <n>\text{ <u>}  <n>\ \mathrm{<u>}  <n> <long>  <n>  <n><u>  <n>\,\text{<u>}  about <n> <u>",
        r"<more> <u>  -<n> <u>  <n>0 <u>  <n> <u> or <more> <u>  <n>\text{ or <more>}  <n> dozen <u>  <n> thousand <u>",
    ),
    "scientific": Kind(
        _scientific, r"<m> \times 10^{<k>}",
        r"<m> \times 10^{<k>}  <m> \cdot 10^<k>  <m>e<k>  <m> x 10^<k>  <plain>  <grouped>  <m> × 10^<k>",
        r"<m> \times 10^{<more>}  <m>  <plain>0  <m> + 10^<k>  <m> 10^<k>  10^<k>",
    ),
}  # fmt: skip
"""Kinds that both verifiers can read."""
SYMBOLIC = {
    "radical": Kind(
        _radical, r"<a>\sqrt{<b>}",
        r"""<a>\sqrt{<b>}  \sqrt{<inside>}  <a> \cdot \sqrt{<b>}  <a>*sqrt(<b>)  <a>√<b>  \sqrt{<b>}*<a>""",
        r"""<a>  \sqrt{<product>}  <a>\sqrt{<other>}  <more>\sqrt{<b>}  <a> <b>  <a>+\sqrt{<b>}
        <a>\sqrt[3]{<b>}  <product>""",
    ),
    "pi": Kind(
        _integer, r"<n>\pi", r"<n>\pi  <n> \pi  <n>π  <n> \cdot \pi  \pi \cdot <n>  <n>*pi  \frac{3*<n>\pi}{3}",
        r"<n>  <more>\pi  <n>\pi^2  <n>+\pi  \frac{<n>}{\pi}  <n>.14  <n>\pi x  -<n>\pi  \pi",
    ),
    "polynomial": Kind(
        _two(2, 30), "x^2+<a>x+<b>",
        r"""x^2+<a>x+<b>  <b>+<a>x+x^2  x^{2} + <a>x + <b>  <b> + <a>*x + x**2  x^2 + <a> \cdot x + <b>
        y = x^2+<a>x+<b>
        x(x+<a>)+<b>  f(x) = x^2 + <a>x + <b>  x²+<a>x+<b>""",
        """x^2+<a>x-<b>  x^2+<sum>  x^3+<a>x+<b>  y^2+<a>y+<b>  x^2+<after>x+<b>  <b>  2x+<a>x+<b>
        x^2+<a>x+<b> > 0  x^2 <a>x <b>""",
    ),
    "point": Kind(
        _two(-30, 30), "(<a>,<b>)",
        r"(<a>,<b>)  (<a>, <b>)  \left(<a>,<b>\right)  ( <a> , <b> )  (x, y) = (<a>, <b>)",
        r"(<b>,<a>)  (<a>,<more>)  [<a>,<b>]  \{<a>,<b>\}  (<a>,<b>,0)  <a>  (<a>)  (<a>,<b>]  (<a> <b>)",
    ),
    "set": Kind(
        _three, r"\{<a>,<b>,<c>\}",
        r"""\{<a>,<b>,<c>\}  \{<c>, <a>, <b>\}  <a>, <b>, <c>  \left\{<a>,<b>,<c>\right\}  <b>, <a> and <c>
        <b>, <a>, and <c>""",
        r"\{<a>,<b>\}  \{<a>,<b>,<more>\}  (<a>,<b>,<c>)  <a>  <a> <b> <c>  <a>+<b>+<c>",
    ),
    "interval": Kind(
        _two(-20, 40), "[<a>,<b>)", r"[<a>,<b>)  [<a>, <b>)  \left[<a>,<b>\right)  x \in [<a>,<b>)  <a> <= x < <b>",
        "(<a>,<b>)  [<a>,<b>]  [<a>,<more>)  (<a>,<b>]  <a>,<b>  <a> < x < <b>  x < <b>  <b>",
    ),
    "union": Kind(
        _two(-20, 40), r"(-\infty,<a>)\cup(<b>,\infty)",
        r"""(-\infty,<a>)\cup(<b>,\infty)  (-\infty, <a>) \cup (<b>, \infty)  (<b>,\infty)\cup(-\infty,<a>)
        \left(-\infty,<a>\right)\cup\left(<b>,\infty\right)  x \in (-\infty,<a>)\cup(<b>,+\infty)""",
        r"""(-\infty,<a>]\cup(<b>,\infty)  (-\infty,<b>)\cup(<a>,\infty)  (-\infty,<a>)  (<a>,<b>)
        (-\infty,<a>),(<b>,\infty)""",
    ),
    "base": Kind(
        _base, "<d>_<b>", r"""<d>_<b>  <d>_{<b>}  <d>_{\text{<name>}}  <d> base <b>  <d> (base <b>)
        <d> in base <b>  <d>_{(<b>)}""",
        "<d>_<more>  <d>1_<b>  <value>  <value>_{10}  <d>_{10}",
    ),
    "time": Kind(_time, "<h>:<m>", "<h>:<m>  <h>:<m>.", "<h>:<more>  <m>:<h>  <h>  <h> <m>  <h>.<m>  <after>:<m>"),
    "inequality": Kind(
        _two(2, 50), r"x \geq <a>", r"x \geq <a>  x >= <a>  x ≥ <a>  <a> \leq x  x \ge <a>  2x \geq <twice>",
        r"x > <a>  x \leq <a>  <a>  x = <a>  x >= <after>  y >= <a>  -x >= <a>",
    ),
    "equation": Kind(
        _two(2, 30), "y=<a>x+<b>",
        """y=<a>x+<b>  y = <b> + <a>x  <a>x - y + <b> = 0  y-<a>x=<b>  <a>x+<b>  y = <a>x + <b>""",
        "y=<a>x-<b>  x=<a>y+<b>  y=<b>x+<a>  <b>  y > <a>x+<b>  <a>x+<b>=0",
    ),
}  # fmt: skip
"""Kinds that are no number."""
KINDS = NUMERIC | SYMBOLIC
