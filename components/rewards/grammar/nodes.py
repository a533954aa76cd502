"""What an answer is made of, and what is said of one that is none."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from components.rewards.units import Unit

MAX_DEPTH, MAX_TOKENS = 24, 1000
"""How deep brackets, exponents and arguments may be nested, and how many tokens one answer may have."""


class NotRead(Exception):
    """The text is not one answer."""


class Node(NamedTuple):
    """A scalar, or what is made of scalars.

    Scalars: ``number`` (a `Fraction`, and whether it has a decimal point), ``mixed`` (whole, fraction), ``symbol``
    (name), ``constant`` (pi, e, i, infinity), ``neg``, ``add``, ``mul``, ``div``, ``pow``, ``call`` (name, arguments),
    ``bracket`` (what they hold), ``degree``, ``percent``, ``either`` (what a plus-minus sign makes, twice).
    Others: ``list`` (no brackets), ``set``, ``tuple`` (bracket, bracket, items), ``union``, ``relation`` (signs,
    sides), ``matrix`` (rows), ``base`` (digits, base), ``clock`` (parts), ``words``.
    """

    kind: str
    args: tuple[Any, ...]


SCALARS = frozenset(
    ("number", "mixed", "symbol", "constant", "neg", "add", "mul", "div", "pow", "call", "bracket", "degree", "percent")
)


class Answer(NamedTuple):
    """One answer: what it is, and what stands around it.

    ``label`` is what it is said to be the value of (``x`` of ``x = 5``), ``suffix`` the half of the day of a time.
    It is not ``clear`` where words stand around that may or may not change what it says.
    """

    node: Node
    percent: bool = False
    unit: Unit | None = None
    label: Node | None = None
    suffix: str = ""
    clear: bool = True


def number(value: Fraction | int, decimal: bool = False) -> Node:
    """The node of a number."""
    return Node("number", (Fraction(value), decimal))


def scalar(node: Node) -> Node:
    """The node, which is a scalar, or NotRead."""
    if node.kind not in SCALARS:
        raise NotRead(f"a {node.kind} is no number")
    return node


def one_number(node: Node) -> Fraction | None:
    """The value of what is written as one number, or None for a calculation, a root, a letter, a set ...

    A number, a fraction of two whole numbers or decimals, a mixed fraction, a number times a power of ten; signs and
    brackets around them.
    """
    match node.kind:
        case "number":
            return Fraction(node.args[0])
        case "mixed":
            return Fraction(node.args[0] + node.args[1])
        case "bracket" | "percent" | "degree":
            return one_number(node.args[0])
        case "neg":
            inner = one_number(node.args[0])
            return None if inner is None else -inner
        case "div":
            above, below = (one_number(arg) if arg.kind in ("number", "neg") else None for arg in node.args)
            return above / below if above is not None and below else None
        case "mul" if len(node.args) == 2:
            mantissa, power = node.args
            scale = one_number(power) if power.kind == "pow" else None
            return mantissa.args[0] * scale if mantissa.kind == "number" and scale is not None else None
        case "pow":
            return _power_of_ten(*node.args)
    return None


def _power_of_ten(base: Node, exponent: Node) -> Fraction | None:
    power = one_number(exponent)
    if base.kind != "number" or base.args[0] != 10 or power is None or power.denominator != 1 or abs(power) > 4000:
        return None
    return Fraction(10) ** int(power)
