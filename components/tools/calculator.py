"""A calculator in the form that GSM8K was published in (2110.14168): ``<<12*3=`` is the call, ``36>>`` the answer."""

from __future__ import annotations

import re
from fractions import Fraction

from components.tools.base import Segment, Tool
from components.tools.expressions import evaluate

OPEN, CLOSE, ERROR = "<<", ">>", "?"
DECIMALS = 4
_CALL = re.compile(r"<<([^<>=]*)=\Z")
_ANNOTATION = re.compile(r"(<<[^<>=]*=)([^<>=]*>>)")


class Calculator(Tool):
    """Answers ``<<expression=`` with ``result>>``, or with ``?>>`` where there is no result."""

    ending = "="

    def observe(self, text: str) -> str | None:
        """An equals sign outside of ``<<`` is text like any other."""
        call = _CALL.search(text)
        return None if call is None else f"{answer(call[1])}{CLOSE}"

    def segments(self, demonstration: str) -> list[Segment]:
        """The tool's are the stretches from ``=`` to ``>>`` of every ``<<expression=result>>``."""
        found, start = [], 0
        for match in _ANNOTATION.finditer(demonstration):
            found += [Segment(demonstration[start : match.end(1)], True), Segment(match[2], False)]
            start = match.end()
        return [*found, Segment(demonstration[start:], True)] if start < len(demonstration) else found


def answer(expression: str) -> str:
    """The result as the calculator shows it: whole, or rounded to four decimals without closing zeros."""
    try:
        return shown(evaluate(expression))
    except ValueError:
        return ERROR


def shown(value: Fraction) -> str:
    """``12``, ``2.5``, ``-0.3333``."""
    units, decimals = divmod(round(abs(value) * 10**DECIMALS), 10**DECIMALS)
    text = f"{units}.{decimals:0{DECIMALS}d}".rstrip("0").rstrip(".")
    return f"-{text}" if value < 0 and text != "0" else text


def annotation(expression: str) -> str:
    """``<<expression=result>>``: the call with its answer."""
    return f"{OPEN}{expression}={answer(expression)}{CLOSE}"
