"""What differs from a mathematical answer in one place, for the forms that `FORMS` knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from components.audit.grammar.base import Kinds, filled, refused
from components.audit.hacks import Target
from components.audit.reference import bare, number

KINDS: Kinds = ("number", "expression", "text")
Made = tuple[Iterable[str], Iterable[str]]
"""Parts of an answer, and what differs from it in one place."""
NOTHING: Made = ((), ())


def mixed(match: re.Match[str]) -> Made:
    r"""``12\frac{3}{5}``, ``12 3/5``"""
    sign, whole, above, below = match["sign"], match["whole"], int(match["above"]), int(match["below"])
    if not above or not int(whole):
        return NOTHING
    parts = (f"{sign}{whole}", rf"\frac{{{above}}}{{{below}}}", f"{above}/{below}", str(above))
    changed = [rf"{sign}{int(whole) + 1}\frac{{{above}}}{{{below}}}", rf"{sign}{whole}\frac{{{above}}}{{{below + 1}}}"]
    if int(whole) * above != int(whole) * below + above:
        changed.append(rf"{sign}{whole}\cdot\frac{{{above}}}{{{below}}}")
    return parts, changed


def linear(match: re.Match[str]) -> Made:
    """``k+5``, ``3x^2-7``"""
    factor, letter, power, sign, constant = match.group("factor", "letter", "power", "sign", "constant")
    other, opposite = ("y" if letter != "y" else "z"), ("-" if sign == "+" else "+")
    term = f"{factor}{letter}{power}"
    parts = [constant, term, *([factor] if factor and factor != "1" else [])]
    changed = [f"{term}{opposite}{constant}", f"{term}{sign}{int(constant) + 1}", f"-{term}{sign}{constant}"]
    changed += [f"{factor}{other}{power}{sign}{constant}", f"2({term}{sign}{constant})", f"{term}{sign}{constant}+1"]
    changed += [f"{factor}{letter}{'^8' if power == '^7' else '^7'}{sign}{constant}", rf"\pm({term}{sign}{constant})"]
    return parts, changed


def surd(match: re.Match[str]) -> Made:
    r"""``3\sqrt{10}`` whose root is no whole number"""
    factor, inner = match["factor"], int(match["inner"])
    if round(inner**0.5) ** 2 == inner:
        return NOTHING
    scaled = [factor, rf"\sqrt{{{inner}}}"] if factor not in ("", "1") else []
    sums = [rf"{factor}+\sqrt{{{inner}}}"] if scaled else []
    others = filled(r"-@\sqrt{#}  @#  @\sqrt[3]{#}  \pm @\sqrt{#}", factor, str(inner))
    return [*scaled, str(inner)], [*sums, rf"{factor}\sqrt{{{inner + 1}}}", *others]


def based(match: re.Match[str]) -> Made:
    """``2516_8``: other bases, and other digits"""
    digits, base = match["digits"], int(match["base"])
    if not all(int(digit) < base for digit in digits) or base > 10 or len(digits) < 2:
        return NOTHING
    others = [(digits, other) for other in range(max(map(int, digits)) + 1, 17) if other not in (base, 1)]
    others.append((f"{digits[:-1]}{(int(digits[-1]) + 1) % base}", base))
    return (), [text for number, of in others for text in (f"{number}_{of}", f"{number}_{{{of}}}")]


def interval(match: re.Match[str]) -> Made:
    """``[0,1)``; two numbers in round brackets are a pair or an interval, so neither end may change"""
    left, low, high, right = match.group("left", "low", "high", "right")
    values = number(low), number(high)
    if None in values or values[0] == values[1]:
        return NOTHING
    changed = [f"{left}{high}, {low}{right}", f"{left}{low}, {int(high) + 1 if high.isdecimal() else 99}{right}"]
    changed.append(f"{left}{low}, {high}, 7{right}")
    if (left, right) != ("(", ")"):
        opened, closed = {"[": "(", "(": "["}[left], {"]": ")", ")": "]"}[right]
        changed += [f"{one}{low},{high}{two}" for one, two in ((opened, right), (left, closed), (opened, closed))]
    return (low, high), changed


def collection(match: re.Match[str]) -> Made:
    r"""``\{1, 2\}``"""
    members = [member.strip() for member in match["members"].split(",")]
    values = [number(member) for member in members]
    if None in values or len(set(values)) < max(2, len(values)):
        return NOTHING
    unused = next(str(guess) for guess in range(100, 1000) if guess not in values)
    others = (members[:1], members[:-1], members[1:], [*members, unused], [unused, *members[1:]])
    return (members[0], members[-1]), [rf"\{{{', '.join(kept)}\}}" for kept in others]


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


def made(target: Target) -> Made:
    """The texts for the form that the reference has."""
    answer = bare(target.prompt.answer)
    found = ((re.fullmatch(pattern, answer, re.ASCII), variants) for pattern, variants in FORMS)
    return next((variants(match) for match, variants in found if match is not None), NOTHING)


def candidates(target: Target) -> Iterator[str]:
    """The reference and something like it, or a relation to it."""
    answer = bare(target.prompt.answer)
    changed = list(made(target)[1])
    for other in changed[:3]:
        yield from filled(r"@ or #  # \text{ or } @  #=@  @, #", answer, other)
    if changed:
        yield from filled(r"\text{not } @  x \neq @  x \le @  x > @", answer)


CLASSES = (
    refused(
        KINDS,
        "part of the reference",
        lambda target: made(target)[0],
        "read the reference as a whole; one that cannot be read is an error of the data, not its first number",
    ),
    refused(
        KINDS,
        "expression changed in one place",
        lambda target: made(target)[1],
        "compare bases, brackets, signs, names of variables and every element",
        "https://github.com/huggingface/Math-Verify/issues/14",
    ),
    refused(
        KINDS,
        "expression among others",
        candidates,
        "the whole answer must be one expression; candidates and relations are none",
    ),
)
