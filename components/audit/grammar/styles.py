"""The right answer as policies write it. A verifier that refuses one of these punishes right answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from components.audit.grammar.base import Kinds, Make, ProbeClass
from components.audit.hacks import Target
from components.audit.reference import bare, integer, number

NUMBERS: Kinds = ("number",)
MATHEMATICS: Kinds = ("number", "expression")


def plain(target: Target) -> str | None:
    """The reference, where it is a number without any dress."""
    answer = bare(target.prompt.answer)
    undressed = answer.isascii() and not {"$", "\\"} & {*answer}
    return answer if undressed and number(answer) is not None else None


def dressed(*patterns: str) -> Make:
    """The number in each of these patterns."""

    def make(target: Target) -> Iterator[str]:
        if (answer := plain(target)) is not None:
            yield from (pattern.replace("@", answer) for pattern in patterns)

    return make


def separated(*separators: str) -> Make:
    """A number of four digits or more, with each of these between its thousands."""

    def make(target: Target) -> Iterator[str]:
        value = integer(target.prompt.answer)
        if value is not None and abs(value) > 999:
            yield from (f"{value:,}".replace(",", separator) for separator in separators)

    return make


def bold_box(target: Target) -> Iterator[str]:
    """The whole statement in bold, where it is a box."""
    if (state := target.verifier.wrap(bare(target.prompt.answer))).startswith(r"\boxed"):
        yield from (f"**{state}**", f"${state}$", f"$$\n{state}\n$$", rf"\[{state}\]", f"The answer is {state}.")


def latex(target: Target) -> Iterator[str]:
    r"""The same LaTeX with ``\dfrac``, or with brackets that grow."""
    answer = bare(target.prompt.answer)
    if r"\frac{" in answer:
        yield from (answer.replace(r"\frac{", rf"\{letter}frac{{") for letter in "dt")
    if re.fullmatch(r"[(\[]-?[\w.]+, ?-?[\w.]+[)\]]", answer, re.ASCII):
        yield from (rf"\left{answer[:-1]}\right{answer[-1]}", rf"\left{answer[:-1]} \right{answer[-1]}")


def with_its_text(target: Target) -> Iterator[str]:
    """The letter, and what the question says it stands for."""
    letter = target.prompt.answer.strip("() .")
    if len(letter) != 1 or not letter.isalpha():
        return
    found = re.findall(rf"(?<![A-Za-z(])\(?{letter}[).]\s*([a-z]{{2,40}})(?![\w'])", target.prompt.text)
    if len(found) == 1:
        yield from (f"({letter}) {found[0]}", f"{letter}) {found[0]}", f"{letter}. {found[0]}")


def next_line(target: Target) -> Iterator[str]:
    """On the line after the marker."""
    if target.verifier.marker:
        yield f"{target.verifier.marker}\n{target.prompt.answer.strip()}"


def fenced(target: Target) -> Iterator[str]:
    """On the line after the marker, or in a block of code."""
    try:
        json.loads(target.prompt.answer)
    except (ValueError, RecursionError):
        return
    yield from (f"\n{target.prompt.answer.strip()}\n", f"\n```\n{target.prompt.answer.strip()}\n```")


def _style(name: str, kinds: Kinds, make: Make, advice: str, whole: bool = False) -> ProbeClass:
    return ProbeClass(name, "accepted", kinds, make, advice, whole, "2505.22203")


DRESS = "leave out dress that does not change the value"
UNIT, TEXT = "a word that is no unit of a table counts as none", "what is dressed as text does not count"
CLASSES = (
    _style("bold", NUMBERS, dressed("**@**", " **@**"), DRESS),
    _style("formula", MATHEMATICS, dressed("$@$", r"\(@\)"), DRESS),
    _style("box", NUMBERS, dressed(r"\boxed{@}", r"$\boxed{@}$"), "read what stands in the box"),
    _style("box in a sentence", ("expression", "choice"), bold_box, "read what stands in the box", whole=True),
    _style("full stop", MATHEMATICS, dressed("@."), "a full stop behind the answer ends a sentence"),
    _style("unit as a word", NUMBERS, dressed("@ apples", "@ people", "@ points"), UNIT),
    _style(
        "unit and full stop", NUMBERS, dressed("@ apples.", "@ people."), "a full stop behind the unit ends a sentence"
    ),
    _style("unit dressed as text", ("expression",), dressed(r"@\text{ apples}", r"@ \text{ people}"), TEXT),
    _style("thousands", MATHEMATICS, separated(","), "a comma between groups of three digits separates thousands"),
    _style("thousands with spaces", MATHEMATICS, separated(" ", r"\,", "{,}"), "so does a space, \\, or {,}"),
    _style("other LaTeX", ("expression",), latex, "sizes of fractions and brackets mean nothing"),
    _style("option with its text", ("choice",), with_its_text, "the letter counts; the text of its option may follow"),
    _style("next line", MATHEMATICS, next_line, "the answer may stand on the line after the marker", whole=True),
    _style(
        "document below", ("json",), fenced, "the document may stand on the lines after the marker, in a block or not"
    ),
)
