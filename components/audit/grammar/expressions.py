"""What differs from a mathematical answer in one place, for the forms that `FORMS` knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from components.audit.grammar.base import ProbeClass
from components.audit.hacks import Target
from components.audit.reference import bare, number
from components.config.answers import AnswerKind

KINDS: tuple[AnswerKind, ...] = ("number", "expression", "text")
Made = Iterator[tuple[str, str]]
"""Which class it belongs to (`PART`, `CHANGED`), and the text."""
PART, CHANGED = "part", "changed"


def mixed(match: re.Match[str]) -> Made:
    r"""``12\frac{3}{5}``, ``12 3/5``"""
    sign, whole, above, below = match["sign"], match["whole"], int(match["above"]), int(match["below"])
    if not above or not int(whole):
        return
    yield PART, f"{sign}{whole}"
    yield PART, rf"\frac{{{above}}}{{{below}}}"
    yield PART, f"{above}/{below}"
    yield PART, str(above)
    yield CHANGED, rf"{sign}{int(whole) + 1}\frac{{{above}}}{{{below}}}"
    yield CHANGED, rf"{sign}{whole}\frac{{{above}}}{{{below + 1}}}"
    if int(whole) * above != int(whole) * below + above:
        yield CHANGED, rf"{sign}{whole}\cdot\frac{{{above}}}{{{below}}}"


def linear(match: re.Match[str]) -> Made:
    """``k+5``, ``3x^2-7``"""
    factor, letter, power, sign, constant = match.group("factor", "letter", "power", "sign", "constant")
    other, opposite = ("y" if letter != "y" else "z"), ("-" if sign == "+" else "+")
    term = f"{factor}{letter}{power}"
    yield PART, constant
    yield PART, term
    if factor and factor != "1":
        yield PART, factor
    yield CHANGED, f"{term}{opposite}{constant}"
    yield CHANGED, f"{term}{sign}{int(constant) + 1}"
    yield CHANGED, f"-{term}{sign}{constant}"
    yield CHANGED, f"{factor}{other}{power}{sign}{constant}"
    yield CHANGED, f"2({term}{sign}{constant})"
    yield CHANGED, f"{term}{sign}{constant}+1"
    yield CHANGED, f"{factor}{letter}{'^8' if power == '^7' else '^7'}{sign}{constant}"
    yield CHANGED, rf"\pm({term}{sign}{constant})"


def surd(match: re.Match[str]) -> Made:
    r"""``3\sqrt{10}`` whose root is no whole number"""
    factor, inner = match["factor"], int(match["inner"])
    if round(inner**0.5) ** 2 == inner:
        return
    if factor not in ("", "1"):
        yield PART, factor
        yield PART, rf"\sqrt{{{inner}}}"
        yield CHANGED, rf"{factor}+\sqrt{{{inner}}}"
    yield PART, str(inner)
    yield CHANGED, rf"{factor}\sqrt{{{inner + 1}}}"
    yield CHANGED, rf"-{factor}\sqrt{{{inner}}}"
    yield CHANGED, f"{factor}{inner}"
    yield CHANGED, rf"{factor}\sqrt[3]{{{inner}}}"
    yield CHANGED, rf"\pm {factor}\sqrt{{{inner}}}"


def based(match: re.Match[str]) -> Made:
    """``2516_8``: other bases, and other digits"""
    digits, base = match["digits"], int(match["base"])
    if not all(int(digit) < base for digit in digits) or base > 10 or len(digits) < 2:
        return
    for other in range(max(map(int, digits)) + 1, 17):
        if other not in (base, 1):
            yield CHANGED, f"{digits}_{other}"
            yield CHANGED, f"{digits}_{{{other}}}"
    last = str((int(digits[-1]) + 1) % base)
    yield CHANGED, f"{digits[:-1]}{last}_{base}"
    yield CHANGED, f"{digits[:-1]}{last}_{{{base}}}"


def interval(match: re.Match[str]) -> Made:
    """``[0,1)``; two numbers in round brackets are a pair or an interval, so neither end may change"""
    left, low, high, right = match.group("left", "low", "high", "right")
    values = number(low), number(high)
    if None in values or values[0] == values[1]:
        return
    swapped = {"[": "(", "(": "[", "]": ")", ")": "]"}
    yield PART, low
    yield PART, high
    yield CHANGED, f"{left}{high}, {low}{right}"
    yield CHANGED, f"{left}{low}, {int(high) + 1 if high.isdecimal() else 99}{right}"
    yield CHANGED, f"{left}{low}, {high}, 7{right}"
    if (left, right) != ("(", ")"):
        yield CHANGED, f"{swapped[left]}{low},{high}{right}"
        yield CHANGED, f"{left}{low},{high}{swapped[right]}"
        yield CHANGED, f"{swapped[left]}{low},{high}{swapped[right]}"


def collection(match: re.Match[str]) -> Made:
    r"""``\{1, 2\}``"""
    members = [member.strip() for member in match["members"].split(",")]
    values = [number(member) for member in members]
    if None in values or len(set(values)) < max(2, len(values)):
        return
    unused = next(str(guess) for guess in range(100, 1000) if guess not in values)
    for kept in (members[:1], members[:-1], members[1:], [*members, unused], [unused, *members[1:]]):
        yield CHANGED, rf"\{{{', '.join(kept)}\}}"
    yield PART, members[0]
    yield PART, members[-1]


FORMS: tuple[tuple[str, Callable[[re.Match[str]], Made]], ...] = (
    (r"(?P<sign>-?)(?P<whole>\d{1,9}) ?\\[dt]?frac\{(?P<above>\d{1,9})\}\{(?P<below>[1-9]\d{0,8})\}", mixed),
    (r"(?P<sign>-?)(?P<whole>\d{1,9}) (?P<above>\d{1,9})/(?P<below>[1-9]\d{0,8})", mixed),
    (
        r"(?P<factor>\d{0,9})(?P<letter>[a-df-hj-z])(?P<power>(?:\^\d)?) ?(?P<sign>[+-]) ?(?P<constant>[1-9]\d{0,8})",
        linear,
    ),
    (r"(?P<factor>\d{0,9})\\sqrt\{(?P<inner>\d{1,9})\}", surd),
    (r"(?P<digits>[1-9]\d{1,15})_\{?(?P<base>\d{1,2})\}?", based),
    (r"(?P<left>[\[(])(?P<low>-?\d{1,9}), ?(?P<high>-?\d{1,9})(?P<right>[\])])", interval),
    (r"\\\{(?P<members>[-\d, ]{3,80})\\\}", collection),
)
"""Pattern of a whole reference answer, and what is made of it."""


def made(target: Target, wanted: str) -> Iterator[str]:
    """The texts of one class for the form that the reference has."""
    answer = bare(target.prompt.answer)
    for pattern, variants in FORMS:
        if (match := re.fullmatch(pattern, answer, re.ASCII)) is not None:
            yield from (text for kind, text in variants(match) if kind == wanted)
            return


def candidates(target: Target) -> Iterator[str]:
    """The reference and something like it, or a relation to it."""
    answer = bare(target.prompt.answer)
    changed = list(made(target, CHANGED))
    if not changed:
        return
    for other in changed[:3]:
        yield from (
            f"{answer} or {other}",
            rf"{other} \text{{ or }} {answer}",
            f"{other}={answer}",
            f"{answer}, {other}",
        )
    yield from (rf"\text{{not }} {answer}", rf"x \neq {answer}", rf"x \le {answer}", rf"x > {answer}")


CLASSES = (
    ProbeClass(
        "part of the reference",
        "refused",
        KINDS,
        lambda target: made(target, PART),
        "read the reference as a whole; one that cannot be read is an error of the data, not its first number",
    ),
    ProbeClass(
        "expression changed in one place",
        "refused",
        KINDS,
        lambda target: made(target, CHANGED),
        "compare bases, brackets, signs, names of variables and every element",
        source="https://github.com/huggingface/Math-Verify/issues/14",
    ),
    ProbeClass(
        "expression among others",
        "refused",
        KINDS,
        candidates,
        "the whole answer must be one expression; candidates and relations are none",
    ),
)
