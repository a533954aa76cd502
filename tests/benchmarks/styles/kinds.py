"""All kinds of references, by name."""

from __future__ import annotations

from tests.benchmarks.styles.functions import logarithm, trigonometric
from tests.benchmarks.styles.groups import finite_set, matrix, point, value_list
from tests.benchmarks.styles.intervals import interval
from tests.benchmarks.styles.notations import base, ratio, time
from tests.benchmarks.styles.numbers import decimal_number, large_int, negative, small_int
from tests.benchmarks.styles.polynomials import complex_number, line, poly1, poly2
from tests.benchmarks.styles.powers import power
from tests.benchmarks.styles.quantities import angle, money, percent, unit
from tests.benchmarks.styles.rationals import fraction, pi
from tests.benchmarks.styles.reference import Draw
from tests.benchmarks.styles.surds import surd

KINDS: dict[str, Draw] = {
    "small_int": small_int,
    "large_int": large_int,
    "negative": negative,
    "decimal": decimal_number,
    "money": money,
    "percent": percent,
    "unit": unit,
    "angle": angle,
    "fraction": fraction,
    "surd": surd,
    "pi": pi,
    "power": power,
    "poly1": poly1,
    "poly2": poly2,
    "tuple": point,
    "interval": interval,
    "set": finite_set,
    "list": value_list,
    "line": line,
    "complex": complex_number,
    "ratio": ratio,
    "time": time,
    "matrix": matrix,
    "log": logarithm,
    "trig": trigonometric,
    "base": base,
}
