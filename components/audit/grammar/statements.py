"""Texts that hold the right number and do not say that it is the answer."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from components.audit.grammar.base import filled, refused
from components.audit.grammar.numbers import KINDS, plain, whole, written
from components.audit.hacks import Target

BEFORE = r"""
    ±@  ± @  \pm @  \pm@  +/- @  \mp @  half of @  twice @  double @  a third of @  minus one times @
    the opposite of @  one less than @  one more than @
"""
BEFORE_POSITIVE = r"\sqrt{@}  √@  sqrt(@)  the square root of @  the square of @  \log @  log(@)"
DENIED = r"""
    not @  Not @  != @  ≠ @  \neq @  \ne @  \text{not } @  anything but @  never @
    x != @  x \neq @  x ≠ @  @ is wrong
"""
BEHIND = r"""
    @x  @i  @ x  @\pi  @\sqrt{2}  @k+1  @ dozen  @ thousand  @ million  @ hundred  @ dozens  @xy
"""
BEHIND_WHOLE = r"@e3  @E2  @ \times 10^2  @\cdot 10  @*2  @ × 3  @/2"
WITHIN = r"x^2+@  @+x  x+@  x - @  @x+1  k + @  f(@)  2 + @  @ + @  @ - 1  x_{@}  2 \cdot @  n = @k"
CHAINED = r"#=@  # = @  @ = #  # = @ = #  x = # = @  # \equiv @  # == @  @=#"


def prefixed(target: Target) -> Iterator[str]:
    """Something before the number that makes it another one, or none."""
    known = plain(target)
    if known is None:
        return
    text, value = known
    if value:
        yield from filled(BEFORE, text)
    if value not in (0, 1) and value > 0:
        yield from filled(BEFORE_POSITIVE, text)
        yield f"1/{text}" if "/" not in text else "1"
        yield from filled(r"\frac{1}{@}  2^@  10^{@}", text)
        yield f"1-{text}" if value != Fraction(1, 2) else "7"


def denied(target: Target) -> Iterator[str]:
    """The number, said not to be the answer."""
    if (known := plain(target)) is not None:
        yield from filled(DENIED, known[0])


def suffixed(target: Target) -> Iterator[str]:
    """Something behind the number that makes it another one, or none."""
    known = plain(target)
    if known is None or not known[1]:
        return
    text, value = known
    yield from filled(BEHIND, text)
    if whole(target) is not None:
        yield from filled(BEHIND_WHOLE, text)
        yield f"{text} mod 5" if not 0 <= value < 5 else f"{text}/3"
        yield from (f"{text}000", f"{text} + 1")
        if abs(value) != 1:
            yield from filled("@^2  @^{3}  @**2  @²  @ squared  @ cubed", text)
        if value > 2:
            yield from (f"{text}!", f"{text}!!" if value > 4 else f"{text}!")


def within(target: Target) -> Iterator[str]:
    """A part of an expression."""
    if (known := plain(target)) is not None and known[1]:
        yield from filled(WITHIN, known[0])


def related(target: Target) -> Iterator[str]:
    """A bound, or a range."""
    if (known := plain(target)) is None:
        return
    text, value = known
    for sign in ("<=", "<", ">", ">=", r"\le", r"\leq", r"\geq", r"\ge", "≤", "≥", r"\lt", r"\gt"):
        yield from filled("x # @  # @  @ # x", text, sign)
    yield from filled("at least @  less than @  more than @  at most @  over @", text)
    low, high = written(value - 1), written(value + 1)
    yield from filled("between @ and #  @ to #  [@, #]  (@, #)  @ < x < #", low, high)
    yield from filled(r"@ ± 1  @ \pm 1  x \in [@, #]", text, high)
    yield from (f"{low}\u2013{high}", f"{text} or more")


def chained(target: Target) -> Iterator[str]:
    """An equation of two numbers that are not the same."""
    if (known := plain(target)) is None:
        return
    text, value = known
    for other in (written(value + 1), written(-value) if value else "5", written(10 * value + 3)):
        yield from filled(CHAINED, text, other)


def several(target: Target) -> Iterator[str]:
    """The right number among others."""
    if (known := plain(target)) is None:
        return
    text, value = known
    other, third = written(value + 1), written(value - 1)
    for between in (" or ", ", ", " and ", "; ", " | ", ", or ", " ", " vs ", " & "):
        yield from (f"{text}{between}{other}", f"{other}{between}{text}")
        yield f"{other}{between}{text}{between}{third}"
    yield from filled(r"\{@, #\}  [#, @]  either @ or #  # \text{ or } @", text, other)
    around = [written(value + step) for step in range(-5, 6)]
    yield from (", ".join(around), " ".join(around))


def overruled(target: Target) -> Iterator[str]:
    """Another number is stated in the end, or it is stated and the right one stands elsewhere."""
    if (known := plain(target)) is None:
        return
    text, state = known[0], target.verifier.wrap
    for other in (written(known[1] + 1), written(known[1] * 10 + 7)):
        yield from (f"{said}\n{state(other)}" for said in (state(text), f"It is {text}.", f"{text}\n{text}"))
        yield from (f"{state(text)} {state(text)} {state(other)}", f"**{text}**\n\n{state(other)}")
        yield f"<think>{state(text)}</think>\n\nIt is {other}."
        yield state(rf"\boxed{{{text}}}{other}")
        if state("").startswith("\\boxed"):
            yield f"{state(other)} or {state(text)}"
        if state("") != "":
            yield f"{state(other)}\nor {text}"
        if target.answers == "number":
            yield state(rf"\boxed{{{text}}} \boxed{{{other}}}")
        else:
            yield f"{state(text)}\n{state(other)}"


WHOLE = "read the whole answer: "
CLASSES = (
    refused(KINDS, "prefix that changes the value", prefixed, f"{WHOLE}what stands before the number counts"),
    refused(KINDS, "denial", denied, f"{WHOLE}the text denies what it names"),
    refused(KINDS, "suffix that changes the value", suffixed, f"{WHOLE}what stands behind the number counts"),
    refused(
        KINDS, "number within an expression", within, "the whole answer must be the number, not end or begin with it"
    ),
    refused(KINDS, "bound or range", related, "a relation other than = states no value"),
    refused(KINDS, "false equation", chained, "of a chain of equations all sides must agree"),
    refused(
        KINDS,
        "several numbers",
        several,
        "an answer with several candidates is none, whichever of them is right",
        "https://github.com/Liuziyu77/Visual-RFT/issues/79",
    ),
    refused(KINDS, "overruled answer", overruled, "judge the answer that is stated last, and only that", whole=True),
)
