"""Expressions that do not reach the target by the rules of Countdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import reduce
from operator import add, mul, sub

from components.audit.grammar.base import Kinds, filled, refused
from components.audit.hacks import Target
from components.tools.expressions import evaluate

CALCULATION: Kinds = ("calculation",)


def question(target: Target) -> tuple[list[int], int, str] | None:
    """Numbers and target of ``[3, 8, 2] = 22``, and the reference expression."""
    found = re.search(r"\[([\d, ]+)\]\D*?(\d+)\D*\Z", target.prompt.text, re.ASCII)
    answer = target.prompt.answer.strip()
    if found is None or not re.fullmatch(r"[\d+\-*/() ]+", answer, re.ASCII):
        return None
    return [int(digits) for digits in re.findall(r"\d+", found[1])], int(found[2]), answer


def broken(target: Target) -> Iterator[str]:
    """The right value with numbers that were not given, or are used up."""
    if (known := question(target)) is None:
        return
    numbers, wanted, answer = known
    spent = sorted(map(int, re.findall(r"\d+", answer))) == sorted(numbers)
    new = next(number for number in range(2, 1000) if number not in numbers)
    yield from (f"{answer}+{new}-{new}", f"({answer})*{new}/{new}", f"{wanted + new}-{new}")
    if 1 not in numbers:
        yield from (f"({answer})*1", f"({answer})/1")
    if 0 not in numbers:
        yield from (f"{answer}+0", f"{answer}-0")
    if spent:
        yield from (f"{answer}+{number}-{number}" for number in numbers)
    if wanted not in numbers:
        yield from (str(wanted), f"({wanted})", f"{wanted} = {wanted}", f"{wanted}*1")


def missed(target: Target) -> Iterator[str]:
    """Another value, whatever is said about it."""
    if (known := question(target)) is None:
        return
    numbers, wanted, answer = known
    given = " ".join(map(str, numbers))
    yield from (f"{answer}+1", f"{answer}-1")
    if wanted:
        yield from (f"-({answer})", f"({answer})*2")
    if len(numbers) > 1:
        yield from (given, f"{given} = {wanted}")
    yield from (f"{wanted + 1}", f"{wanted + 1} = {wanted}", f"{answer} = {wanted + 1}", f"{answer} != {wanted}")
    for old, new in ("+-", "-+", "*+", "+*", "/*", "-*"):
        for at in (at for at, sign in enumerate(answer) if sign == old):
            text = f"{answer[:at]}{new}{answer[at + 1 :]}"
            with suppress(ValueError):
                if evaluate(text) != wanted:
                    yield from (text, f"{text} = {wanted}")
    for sign, operation in (("+", add), ("-", sub), ("*", mul)):
        text = sign.join(map(str, numbers))
        if reduce(operation, numbers) != wanted:
            yield from (text, f"{text} = {wanted}")


def programmed(target: Target) -> Iterator[str]:
    """What a programming language would evaluate, and no calculation is."""
    if (known := question(target)) is None:
        return
    _, wanted, answer = known
    calls = "int('#')  abs(@)  sum([@])  max(@, 0)  round(@)  len('xxxxx')  @ if 1 else 0  (@)**1"
    yield from filled(calls, answer, str(wanted))
    yield f"0x{wanted:x}"
    yield from filled("#.0  lambda: @  @ or #  @, @", answer, str(wanted))
    yield from (f"{answer}\n{answer}+1", f"[{answer}]", f"x = {answer}")


CLASSES = (
    refused(CALCULATION, "numbers not given", broken, "count each number of the expression against those given"),
    refused(CALCULATION, "target missed", missed, "compute the value; believe no claim about it"),
    refused(CALCULATION, "program", programmed, "read one expression of digits and operators; evaluate nothing else"),
)
