"""A health rule, from text to a condition that can be read off a history.

The language is small on purpose: signals, `step`, numbers, the functions of `windows`, ``+ - *``, comparisons, ``and``,
``or``, ``not``. There is no division (write ``a > 2 * b``), so a rule that loads can never fail while a run goes on.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

from simpleeval import SimpleEval

from components.config.judgement import RuleSettings
from components.errors import InputError
from components.health.signals.catalogue import SIGNALS, find_signal
from components.health.windows import COUNTED, WINDOWS

OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_STRUCTURE = (ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Load)


@dataclass(frozen=True, slots=True)
class Reading:
    """One thing a rule reads: a signal now (``function`` None), or a function over its history."""

    signal: str
    function: str | None = None
    count: int | None = None

    def __str__(self) -> str:
        if self.function is None:
            return self.signal
        return f"{self.function}({self.signal}{'' if self.count is None else f', {self.count}'})"


@dataclass(frozen=True)
class Rule:
    """A compiled rule: ``expression`` is ``settings.when`` with every reading replaced by a name of ``readings``."""

    name: str
    settings: RuleSettings
    expression: ast.expr
    readings: Mapping[str, Reading]

    @property
    def signals(self) -> list[str]:
        """The signals it reads, sorted."""
        return sorted({reading.signal for reading in self.readings.values()})

    def holds(self, step: int, values: Mapping[str, float]) -> bool:
        """Evaluate the condition; ``values`` has one finite number for every key of ``readings``."""
        evaluator = SimpleEval(operators=OPERATORS, functions={}, names={"step": step, **values})
        return bool(evaluator.eval(self.settings.when, previously_parsed=self.expression))


def compile_rule(name: str, settings: RuleSettings) -> Rule:
    """Parse and check one rule.

    Raises:
        InputError: a syntax error, an unknown signal or function, or something the language does not have.
    """
    try:
        expression = ast.parse(settings.when.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise _refusal(name, settings.when, f"it cannot be read: {error}") from error
    compiler = _Compiler(name, settings.when)
    if not _is_condition(expression):
        compiler.refuse("it is not a condition", "compare something, as in `entropy < 0.5`")
    compiled = compiler.visit(expression)
    if not compiler.readings:
        compiler.refuse("it reads no signal", f"use one of: {', '.join(SIGNALS)}")
    return Rule(name, settings, compiled, compiler.readings)


def _is_condition(node: ast.AST) -> bool:
    """True when the expression is a truth value at its top, and wherever ``and``, ``or`` and ``not`` join parts."""
    if isinstance(node, ast.BoolOp):
        return all(map(_is_condition, node.values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _is_condition(node.operand)
    return isinstance(node, ast.Compare)


def _refusal(rule: str, text: str, problem: str, how: str | None = None) -> InputError:
    return InputError(f"health rule {rule!r}: {problem}", where=f"when: {text}", how=how or "correct the expression")


class _Compiler(ast.NodeTransformer):
    """Replaces signals and function calls by names, and refuses everything outside the language."""

    def __init__(self, rule: str, text: str) -> None:
        self._rule, self._text = rule, text
        self.readings: dict[str, Reading] = {}

    def refuse(self, problem: str, how: str | None = None) -> NoReturn:
        raise _refusal(self._rule, self._text, problem, how)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, (*_STRUCTURE, *OPERATORS)):
            self.refuse(
                f"{type(node).__name__} is not part of the rule language",
                "use signals, step, numbers, + - *, comparisons, and / or / not; instead of dividing, multiply",
            )
        return super().generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            self.refuse(f"{node.value!r} is not a number")
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return node if node.id == "step" else self._read(Reading(self._signal(node)))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if function not in WINDOWS:
            self.refuse(f"unknown function {function!r}", f"use one of: {', '.join(WINDOWS)}")
        if node.keywords or not 1 <= len(node.args) <= 2:
            self.refuse(f"{function} takes a signal and, after it, a number of steps")
        count = self._count(node.args[1]) if len(node.args) == 2 else None
        if count is None and function in COUNTED:
            self.refuse(f"{function} needs a number of steps", f"write {function}(signal, 5)")
        return self._read(Reading(self._signal(node.args[0]), function, count))

    def _signal(self, node: ast.AST) -> str:
        name = node.id if isinstance(node, ast.Name) else ast.unparse(node)
        if find_signal(name) is None:
            near = get_close_matches(name, SIGNALS, n=1)
            self.refuse(
                f"unknown signal {name!r}", f"did you mean {near[0]}?" if near else f"use one of: {', '.join(SIGNALS)}"
            )
        return name

    def _count(self, node: ast.AST) -> int:
        if not isinstance(node, ast.Constant) or type(node.value) is not int or node.value < 1:
            self.refuse(f"{ast.unparse(node)} is not a number of steps", "write a whole number of at least 1")
        return node.value

    def _read(self, reading: Reading) -> ast.Name:
        self.readings[str(reading)] = reading
        return ast.Name(id=str(reading), ctx=ast.Load())
