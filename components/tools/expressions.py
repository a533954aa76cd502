"""Exact arithmetic on short expressions: numbers, ``+ - * /``, signs and brackets.

Python's own parser reads them, and nothing is executed. There are no powers, no names and no calls, and both
length and size are bounded, so that no expression takes long.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

MAX_CHARS = 64
MAX_SIZE = 10**15
OPERATORS: Mapping[type[ast.AST], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_READABLE = re.compile(r"[\d.+*/()\s-]*")
_LEADING_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")
"""Of 007, which is no number of Python's."""


def evaluate(expression: str) -> Fraction:
    """The exact value.

    Raises:
        ValueError: not an expression, too long, a division by zero, or a result of 10^15 or more on the way.
    """
    if len(expression) > MAX_CHARS:
        raise ValueError(f"an expression has at most {MAX_CHARS} characters")
    text = expression.rstrip()
    if not text.isascii() or not _READABLE.fullmatch(text):
        raise ValueError(f"cannot read {expression!r}")
    text = _LEADING_ZEROS.sub("", " ".join(text.split()))
    try:
        return _value(ast.parse(text, mode="eval").body, text)
    except SyntaxError:
        raise ValueError(f"not an expression: {expression!r}") from None
    except ZeroDivisionError:
        raise ValueError("division by zero") from None


def _value(node: ast.expr, text: str) -> Fraction:
    if isinstance(node, ast.Constant):
        value = Fraction(text[node.col_offset : node.end_col_offset])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        value = _value(node.operand, text)
        value = -value if isinstance(node.op, ast.USub) else value
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        value = OPERATORS[type(node.op)](_value(node.left, text), _value(node.right, text))
    else:
        raise ValueError(f"not a number, a sign, a bracket or one of + - * /: {ast.unparse(node)}")
    if abs(value) >= MAX_SIZE:
        raise ValueError("the number is too large")
    return value
