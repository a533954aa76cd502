"""Texts that hold the right number and do not say that it is the answer."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from components.audit.grammar.numbers import plain, sort, whole, written
from components.audit.hacks import Target

DENIALS = ("not ", "Not ", "!= ", "\u2260 ", r"\neq ", r"\ne ", r"\text{not } ", "anything but ", "never ")


def prefixed(target: Target) -> Iterator[str]:
    """Something before the number that makes it another one, or none."""
    known = plain(target)
    if known is None:
        return
    text, value = known
    if value:
        yield from (f"\u00b1{text}", f"\u00b1 {text}", rf"\pm {text}", rf"\pm{text}", f"+/- {text}", rf"\mp {text}")
        yield from (
            f"half of {text}",
            f"twice {text}",
            f"double {text}",
            f"a third of {text}",
            f"minus one times {text}",
        )
        yield from (f"the opposite of {text}", f"one less than {text}", f"one more than {text}")
    if value not in (0, 1) and value > 0:
        yield from (rf"\sqrt{{{text}}}", f"\u221a{text}", f"sqrt({text})", f"the square root of {text}")
        yield from (f"the square of {text}", rf"\log {text}", f"log({text})", f"1/{text}" if "/" not in text else "1")
        yield from (
            rf"\frac{{1}}{{{text}}}",
            f"2^{text}",
            f"10^{{{text}}}",
            f"1-{text}" if value != Fraction(1, 2) else "7",
        )


def denied(target: Target) -> Iterator[str]:
    """The number, said not to be the answer."""
    if (known := plain(target)) is not None:
        yield from (f"{denial}{known[0]}" for denial in DENIALS)
        yield from (f"x != {known[0]}", rf"x \neq {known[0]}", f"x \u2260 {known[0]}", f"{known[0]} is wrong")


def suffixed(target: Target) -> Iterator[str]:
    """Something behind the number that makes it another one, or none."""
    known = plain(target)
    if known is None or not known[1]:
        return
    text, value = known
    yield from (f"{text}x", f"{text}i", f"{text} x", rf"{text}\pi", rf"{text}\sqrt{{2}}", f"{text}k+1")
    yield from (
        f"{text} dozen",
        f"{text} thousand",
        f"{text} million",
        f"{text} hundred",
        f"{text} dozens",
        f"{text}xy",
    )
    if whole(target) is not None:
        yield from (
            f"{text}e3",
            f"{text}E2",
            rf"{text} \times 10^2",
            rf"{text}\cdot 10",
            f"{text}*2",
            f"{text} \u00d7 3",
        )
        yield from (f"{text}/2", f"{text} mod 5" if not 0 <= value < 5 else f"{text}/3", f"{text}000", f"{text} + 1")
        if abs(value) != 1:
            yield from (f"{text}^2", f"{text}^{{3}}", f"{text}**2", f"{text}\u00b2", f"{text} squared", f"{text} cubed")
        if value > 2:
            yield from (f"{text}!", f"{text}!!" if value > 4 else f"{text}!")


def within(target: Target) -> Iterator[str]:
    """A part of an expression."""
    if (known := plain(target)) is not None and known[1]:
        text = known[0]
        yield from (f"x^2+{text}", f"{text}+x", f"x+{text}", f"x - {text}", f"{text}x+1", f"k + {text}", f"f({text})")
        yield from (
            f"2 + {text}",
            f"{text} + {text}",
            f"{text} - 1",
            f"x_{{{text}}}",
            rf"2 \cdot {text}",
            f"n = {text}k",
        )


def related(target: Target) -> Iterator[str]:
    """A bound, or a range."""
    if (known := plain(target)) is None:
        return
    text, value = known
    for sign in ("<=", "<", ">", ">=", r"\le", r"\leq", r"\geq", r"\ge", "\u2264", "\u2265", r"\lt", r"\gt"):
        yield from (f"x {sign} {text}", f"{sign} {text}", f"{text} {sign} x")
    yield from (f"at least {text}", f"less than {text}", f"more than {text}", f"at most {text}", f"over {text}")
    low, high = written(value - 1), written(value + 1)
    yield from (
        f"between {low} and {high}",
        f"{low} to {high}",
        f"[{low}, {high}]",
        f"({low}, {high})",
        f"{low} < x < {high}",
    )
    yield from (
        f"{text} \u00b1 1",
        rf"{text} \pm 1",
        rf"x \in [{text}, {high}]",
        f"{low}\u2013{high}",
        f"{text} or more",
    )


def chained(target: Target) -> Iterator[str]:
    """An equation of two numbers that are not the same."""
    if (known := plain(target)) is None:
        return
    text, value = known
    for other in (written(value + 1), written(-value) if value else "5", written(10 * value + 3)):
        yield from (f"{other}={text}", f"{other} = {text}", f"{text} = {other}", f"{other} = {text} = {other}")
        yield from (f"x = {other} = {text}", rf"{other} \equiv {text}", f"{other} == {text}", f"{text}={other}")


def several(target: Target) -> Iterator[str]:
    """The right number among others."""
    if (known := plain(target)) is None:
        return
    text, value = known
    other, third = written(value + 1), written(value - 1)
    for between in (" or ", ", ", " and ", "; ", " | ", ", or ", " ", " vs ", " & "):
        yield from (f"{text}{between}{other}", f"{other}{between}{text}")
        yield f"{other}{between}{text}{between}{third}"
    yield from (
        rf"\{{{text}, {other}\}}",
        f"[{other}, {text}]",
        f"either {text} or {other}",
        rf"{other} \text{{ or }} {text}",
    )
    yield ", ".join(written(value + step) for step in range(-5, 6))
    yield " ".join(written(value + step) for step in range(-5, 6))


def overruled(target: Target) -> Iterator[str]:
    """Another number is stated in the end, or it is stated and the right one stands elsewhere."""
    if (known := plain(target)) is None:
        return
    text, state = known[0], target.verifier.wrap
    for other in (written(known[1] + 1), written(known[1] * 10 + 7)):
        yield from (
            f"{state(text)}\n{state(other)}",
            f"It is {text}.\n{state(other)}",
            f"{text}\n{text}\n{state(other)}",
        )
        yield from (f"{state(text)} {state(text)} {state(other)}", f"**{text}**\n\n{state(other)}")
        yield f"<think>{state(text)}</think>\n\nIt is {other}."
        yield state(rf"\boxed{{{text}}}{other}")
        if state("").startswith("\\boxed"):
            yield f"{state(other)} or {state(text)}"
        if target.verifier.wrap("") != "":
            yield f"{state(other)}\nor {text}"
        yield (
            state(rf"\boxed{{{text}}} \boxed{{{other}}}")
            if target.answers == "number"
            else f"{state(text)}\n{state(other)}"
        )


CLASSES = (
    sort("prefix that changes the value", prefixed, "read the whole answer: what stands before the number counts"),
    sort("denial", denied, "read the whole answer: the text denies what it names"),
    sort("suffix that changes the value", suffixed, "read the whole answer: what stands behind the number counts"),
    sort("number within an expression", within, "the whole answer must be the number, not end or begin with it"),
    sort("bound or range", related, "a relation other than = states no value"),
    sort("false equation", chained, "of a chain of equations all sides must agree"),
    sort(
        "several numbers",
        several,
        "an answer with several candidates is none, whichever of them is right",
        "https://github.com/Liuziyu77/Visual-RFT/issues/79",
    ),
    sort("overruled answer", overruled, "judge the answer that is stated last, and only that", whole=True),
)
