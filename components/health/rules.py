"""A health rule, from text to conditions that can be read off a history.

The language is small on purpose: signals, `step`, numbers, the functions of `windows`, ``+ - *``, comparisons, ``and``,
``or``, ``not``. There is no division (write ``a > 2 * b``), numbers are bounded and floats, and so is the depth: a rule
that loads can never fail while a run goes on.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Any, NoReturn

from simpleeval import SimpleEval

from components.config.judgement import RuleSettings
from components.errors import InputError
from components.health.signals.catalogue import SIGNALS, find_signal
from components.health.windows import BASELINES, COUNTED, WINDOWS

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
LARGEST = 1e150
"""What a constant stays below in magnitude: nothing measured is larger, and larger ones may not be finite."""
DEEPEST = 100
"""Levels of nesting; evaluating takes a few frames of the interpreter for each, and the rest belongs to the run."""
_STRUCTURE = (ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Load)


@dataclass(frozen=True, slots=True)
class Reading:
    """One thing a rule reads: a signal now (``function`` None), or a function over its history.

    ``signal`` may be the text of a condition, whose history is 0 and 1; ``inner`` is that condition.
    """

    signal: str
    function: str | None = None
    count: int | None = None
    share: float | None = None
    inner: Condition | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.function is None:
            return self.signal
        return f"{self.function}({', '.join(str(v) for v in (self.signal, self.share, self.count) if v is not None)})"


@dataclass(frozen=True)
class Condition:
    """A compiled condition: ``expression`` is ``text`` with every reading replaced by a name of ``readings``."""

    text: str
    expression: ast.expr
    readings: Mapping[str, Reading]

    @cached_property
    def nested(self) -> list[Reading]:
        """All that it reads, what its inner conditions read before them."""
        found: list[Reading] = []
        for reading in self.readings.values():
            found += reading.inner.nested if reading.inner else []
            found.append(reading)
        return found

    @property
    def signals(self) -> set[str]:
        """The signals it reads, those of inner conditions included."""
        return {reading.signal for reading in self.nested if reading.inner is None}

    def holds(self, evaluator: SimpleEval, step: int, values: Mapping[str, float]) -> bool:
        """Evaluate it; ``values`` has one finite number for every key of ``readings``."""
        evaluator.names = {"step": float(step), **values}  # whole numbers could outgrow a float
        return bool(evaluator.eval(self.text, previously_parsed=self.expression))


@dataclass(frozen=True)
class Rule:
    """A compiled rule. It breaches where ``when`` holds and ``unless`` does not."""

    name: str
    settings: RuleSettings
    when: Condition
    unless: Condition | None

    @cached_property
    def signals(self) -> list[str]:
        """The signals that it cannot be judged without, sorted."""
        return sorted(self.when.signals)

    @property
    def conditions(self) -> list[Condition]:
        return [self.when, *([self.unless] if self.unless else [])]


def evaluator() -> SimpleEval:
    """What evaluates conditions: a library's, with our operators and without any function."""
    return SimpleEval(operators=OPERATORS, functions={}, names={})


def compile_rule(name: str, settings: RuleSettings) -> Rule:
    """Parse and check one rule.

    Raises:
        InputError: a syntax error, an unknown signal or function, or something the language does not have.
    """
    when = compile_condition(name, "when", settings.when)
    unless = compile_condition(name, "unless", settings.unless) if settings.unless else None
    return Rule(name, settings, when, unless)


@lru_cache(maxsize=1024)  # a run and its report compile the same rules some ten times
def compile_condition(rule: str, key: str, text: str) -> Condition:
    """Parse and check one condition of a rule; raises as `compile_rule`."""
    compiler = _Compiler(rule, f"{key}: {text}")
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        compiler.refuse(f"it cannot be read: {error}")
    return compiler.condition(text, expression)


def _depth(node: ast.AST) -> int:
    """Levels of an expression, counted without descending into it."""
    depth, level = 0, [node]
    while level:
        depth, level = depth + 1, [child for one in level for child in ast.iter_child_nodes(one)]
    return depth


def _is_condition(node: ast.AST) -> bool:
    """True when the expression is a truth value at its top, and wherever ``and``, ``or`` and ``not`` join parts."""
    if isinstance(node, ast.BoolOp):
        return all(map(_is_condition, node.values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _is_condition(node.operand)
    return isinstance(node, ast.Compare)


class _Compiler(ast.NodeTransformer):
    """Replaces signals and function calls by names, and refuses everything outside the language."""

    def __init__(self, rule: str, where: str) -> None:
        self._rule, self._where = rule, where
        self.readings: dict[str, Reading] = {}

    def refuse(self, problem: str, how: str = "correct the expression") -> NoReturn:
        raise InputError(f"health rule {self._rule!r}: {problem}", where=self._where, how=how)

    def condition(self, text: str, expression: ast.expr) -> Condition:
        if _depth(expression) > DEEPEST:
            self.refuse(f"it is nested more than {DEEPEST} levels deep", "make several rules of it")
        if not _is_condition(expression):
            self.refuse("it is not a condition", "compare something, as in `entropy < 0.5`")
        compiled = self.visit(expression)
        if not self.readings:
            self.refuse("it reads no signal", f"use one of: {', '.join(SIGNALS)}")
        return Condition(text, compiled, self.readings)

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
        if not abs(node.value) < LARGEST:
            self.refuse(f"a number that is not below {LARGEST:g}", "compare with one that can occur")
        return ast.copy_location(ast.Constant(float(node.value)), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return node if node.id == "step" else self._read(Reading(self._signal(node)))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if function not in WINDOWS:
            self.refuse(f"unknown function {function!r}", f"use one of: {', '.join(WINDOWS)}")
        most = 3 if function == "quantile" else 2
        if node.keywords or not 1 <= len(node.args) <= most:
            self.refuse(f"{function} takes a signal and, after it, a number of steps")
        share = self._share(node) if function == "quantile" else None
        count = self._count(node.args[-1]) if len(node.args) == most else None
        if count is None and function in COUNTED:
            self.refuse(f"{function} needs a number of steps", f"write {function}(signal, {'0.1, ' * (most > 2)}5)")
        if function == "share":
            return self._read(self._condition(node.args[0], count))
        return self._read(Reading(self._signal(node.args[0]), function, count, share))

    def _condition(self, node: ast.expr, count: int | None) -> Reading:
        """``share(entropy < 0.5, 20)``: over the history of a condition."""
        text = ast.unparse(node)
        if not _is_condition(node):
            self.refuse("share needs a condition", "write share(entropy < 0.5, 20)")
        return Reading(text, "share", count, inner=_Compiler(self._rule, self._where).condition(text, node))

    def _share(self, node: ast.Call) -> float:
        value = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            self.refuse("quantile takes a signal, a share and a number of steps", "write quantile(entropy, 0.1, 20)")
        return float(value)

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


def longest(rules: list[Rule]) -> tuple[dict[str, int], dict[str, int]]:
    """For every signal and inner condition that is read: the longest window, and the longest baseline, in steps."""
    reach: dict[str, int] = {}
    opening: dict[str, int] = {}
    for condition in [c for rule in rules for c in rule.conditions]:
        for reading in condition.nested:
            kept = opening if reading.function in BASELINES else reach
            kept[reading.signal] = max(kept.get(reading.signal, 1), reading.count or 1)
            reach.setdefault(reading.signal, 1)
    return reach, opening
