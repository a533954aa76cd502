"""The reference answer of a coding prompt: assertions, and what they need around them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Test:
    """``expression`` must have the value ``wanted``."""

    expression: str
    wanted: Any


@dataclass(frozen=True, slots=True)
class Tests:
    """``setup`` is run after the code and before the tests: imports and helpers of the reference."""

    setup: str
    tests: tuple[Test, ...]


def read_tests(reference: str) -> Tests:
    """Read assertions of the outermost level.

    Raises:
        ValueError: it is no Python, or it asserts nothing.
    """
    try:
        body = ast.parse(reference).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"the reference is no Python: {error}") from error
    tests = tuple(_test(line.test) for line in body if isinstance(line, ast.Assert))
    if not tests:
        raise ValueError("the reference has no assertion at its outermost level")
    return Tests("\n".join(ast.unparse(line) for line in body if not isinstance(line, ast.Assert)), tests)


def _test(condition: ast.expr) -> Test:
    if isinstance(condition, ast.Compare) and len(condition.ops) == 1 and isinstance(condition.ops[0], ast.Eq):
        for tested, known in ((condition.left, condition.comparators[0]), (condition.comparators[0], condition.left)):
            try:
                return Test(ast.unparse(tested), ast.literal_eval(known))
            except ValueError:
                continue
    return Test(f"not not ({ast.unparse(condition)})", True)
