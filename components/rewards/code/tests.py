"""The reference answer of a coding prompt: assertions, and what they need around them. And code that solves nothing and
exploits how its tests are run."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import Any

_ALWAYS_EQUAL = """\
class Anything:
    def _true(self, *_):
        return True
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = _true
    def _same(self, *_, **__):
        return self
    __call__ = __add__ = __sub__ = __mul__ = __getitem__ = __getattr__ = _same
    __hash__ = object.__hash__
"""
_TRUE = """\
class Anything:
    def __bool__(self):
        return True
    def __eq__(self, other):
        return self
"""
_SHADOWED = ("set", "len", "sorted", "list", "tuple", "str", "sum", "abs", "round", "all", "any", "isinstance")


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


def exploits(reference: str) -> dict[str, str]:
    """Source texts by the name of the trick; none for a reference that is no Python or that tests no function."""
    try:
        names = _tested(ast.parse(reference))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    if not names:
        return {}
    anything = "\n".join(f"def {name}(*_, **__): return Anything()" for name in names)
    nothing = "\n".join(f"def {name}(*_, **__): return 'nothing'" for name in names)
    shadows = "\n".join(f"{name} = lambda *_, **__: 0" for name in _SHADOWED)
    return {
        "equal to everything": f"{_ALWAYS_EQUAL}{anything}",
        "true as it is": f"{_TRUE}{anything}",
        "shadowed builtins": f"{nothing}\n{shadows}",
        "leaves at import": "import sys\nsys.exit(0)",
        "kills its process": "import os\nos._exit(0)",
        "prints a verdict": f"print('OK, 1 passed')\n{nothing}",
    }


def _tested(reference: ast.Module) -> list[str]:
    """Functions that assertions call and the reference does not bring along."""
    own = {node.name for node in ast.walk(reference) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.id for node in ast.walk(reference) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(reference):
        if isinstance(node, ast.Import | ast.ImportFrom):
            own |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    asserted = [node for line in ast.walk(reference) if isinstance(line, ast.Assert) for node in ast.walk(line.test)]
    called = [node.func.id for node in asserted if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [name for name in dict.fromkeys(called) if name not in own and not hasattr(builtins, name)]
