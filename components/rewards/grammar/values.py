"""The value of an expression: exact where it is rational, else to 60 digits; letters stand for given points.

Two expressions are the same where they have the same values at points that their writer does not choose. Polynomials
and fractions are compared exactly; for the rest two different expressions would have to agree to 40 digits everywhere.
No step takes more than a few milliseconds: what would is not read.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, reduce
from operator import add, mul
from typing import Any

from components.rewards.grammar.arithmetic import Value, alike, call, constant, context, divided, inexact, power
from components.rewards.grammar.nodes import Node, NotRead

SIZES = ((200, 3000),) * 4 + ((5000, 50_000),) * 4 + ((10**6, 10**8),) * 4
"""Between which thousandths a letter lies at a point, either side of zero: what is defined by cases shows them all."""
POINTS, ENOUGH = len(SIZES), 4
"""At so many points two expressions are compared; so many must have values."""


@cache
def coordinate(name: str, point: int) -> Fraction:
    """What the letter stands for at a point."""
    seed = zlib.crc32(name.encode())
    half, other = point & 1, point >> 1 & 1
    sign = (half, other, half ^ other)[seed % 3]
    low, high = SIZES[point]
    size = low + zlib.crc32(f"{name} {point}".encode()) % (high - low)
    return Fraction(-size if sign else size, 997)


def symbols(node: Node) -> frozenset[str]:
    """The letters of an expression or of anything made of expressions."""
    if node.kind == "symbol":
        return frozenset(node.args)
    found: frozenset[str] = frozenset()
    for arg in node.args:
        for inner in _nodes(arg):
            found |= symbols(inner)
    return found


def _nodes(arg: Any) -> list[Node]:
    if isinstance(arg, Node):
        return [arg]
    return [node for inner in arg for node in _nodes(inner)] if isinstance(arg, tuple) else []


def pairs(one: Node, two: Node) -> Iterator[tuple[Value, Value]]:
    """The values of both at every point at which one of them has a value.

    Raises:
        NotRead: there are too few such points: it divides by zero, or is too large to be computed.
    """
    found = 0
    for point in range(POINTS):
        here = [_value_or_none(node, point) for node in (one, two)]
        if here != [None, None]:
            found += 1
            yield here[0], here[1]
    if found < ENOUGH:
        raise NotRead("it has no value")


def _value_or_none(node: Node, point: int) -> Value | None:
    try:
        return evaluate(node, point)
    except NotRead:
        return None


def evaluate(node: Node, point: int) -> Value:
    """The value at one point.

    Raises:
        NotRead: it has none there, or one that is too large to be computed.
    """
    match node.kind:
        case "number":
            return node.args[0]
        case "mixed":
            return node.args[0] + node.args[1]
        case "symbol":
            return coordinate(node.args[0], point)
        case "constant":
            return constant(node.args[0])
        case "bracket":
            return evaluate(node.args[0], point)
        case "call":
            return call(node.args[0], [evaluate(arg, point) for arg in node.args[1]])
    found = [evaluate(arg, point) for arg in node.args]
    match node.kind:
        case "neg":
            return -found[0]
        case "degree":
            return inexact(found[0]) * context().pi / 180
        case "percent":
            return divided(found[0], Fraction(100))
        case "add":
            return _folded(found, add)
        case "mul":
            return _folded(found, mul)
        case "div":
            return divided(*found)
        case "pow":
            return power(*found)
    raise NotRead(f"a {node.kind} has no value")


def _folded(found: list[Value], operation: Callable[[Value, Value], Value]) -> Value:
    return reduce(lambda total, value: operation(*alike(total, value)), found)
