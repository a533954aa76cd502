"""Where the rules draw a line: what a condition compares with a constant, read from the compiled rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from components.config.judgement import RuleSettings
from components.health.rules import Condition, Rule, compile_rule
from components.types import Level

SAME_UNIT = frozenset({None, "last", "first", "mean", "quantile", "baseline", "min", "max"})
"""Functions whose value can be drawn on the signal's own axis; a slope cannot."""
PRESENT = frozenset({None, "last", "mean", "quantile"})
"""Those that state how the signal is now. An extreme or a start in a joint condition only states when a rule
applies."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A rule breaches when the signal lies beyond ``value``.

    Where not ``alone``, only together with something else: another condition, an exception that does not hold, or a
    share of the latest steps.
    """

    rule: str
    level: Level
    signal: str
    function: str | None
    value: float
    above: bool
    alone: bool


def limits(rules: Mapping[str, RuleSettings]) -> list[Limit]:
    """Every limit, in the order of the rules.

    Raises:
        InputError: a rule is malformed.
    """
    compiled = [compile_rule(name, settings) for name, settings in rules.items()]
    return [
        limit
        for rule in compiled
        for limit in _of(rule, rule.when, rule.when.expression, alone=rule.unless is None, breach=True)
    ]


def _of(rule: Rule, within: Condition, node: ast.expr, *, alone: bool, breach: bool) -> Iterator[Limit]:
    """Limits in one part of a condition; ``breach`` states whether it helps to breach when it holds, or when it
    fails."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield from _of(rule, within, inner, alone=alone, breach=not breach)
        case ast.BoolOp(op=joint, values=parts):
            enough = isinstance(joint, ast.Or) == breach
            for part in parts:
                yield from _of(rule, within, part, alone=alone and enough, breach=breach)
        case ast.Compare(left=left, ops=ops, comparators=others):
            single = alone and (len(ops) == 1 or not breach)
            for op, (one, other) in zip(ops, pairwise([left, *others]), strict=True):
                greater = isinstance(op, (ast.Gt, ast.GtE)) == breach
                for name, number, above in ((one, other, greater), (other, one, not greater)):
                    yield from _limit(rule, within, name, number, above, single)


def _limit(
    rule: Rule, within: Condition, name: ast.expr, number: ast.expr, above: bool, alone: bool
) -> Iterator[Limit]:
    value = _constant(number)
    if value is None or not isinstance(name, ast.Name) or name.id not in within.readings:
        return
    reading = within.readings[name.id]
    if reading.inner is not None:  # of the steps in which this held
        yield from _of(rule, reading.inner, reading.inner.expression, alone=False, breach=above)
    elif reading.function in (SAME_UNIT if alone else PRESENT):
        yield Limit(rule.name, rule.settings.level, reading.signal, reading.function, value, above, alone)


def _constant(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -float(value)
    return None
