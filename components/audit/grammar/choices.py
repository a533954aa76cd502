"""What is no choice of one option."""

from __future__ import annotations

from collections.abc import Iterator

from components.audit.grammar.base import Kinds, filled, refused
from components.audit.hacks import Target

CHOICE: Kinds = ("choice",)
SEVERAL = r"(@) (#)  (@)(#)  (#), (@)  either # or @  @) or #)  both @ and #  # \text{ or } @"
DENIED = """not @  Not (@)  anything but @  all but @  !@  never @  @ is wrong  @ is incorrect  @ is not correct
    It is not @  not @ but #  #, not @  # (@ is wrong)  @? No, #"""
IN_A_WORD = "@lpha  @@  @x  x@  @1  @bout half  @ny of them  I think of @nother  @_1"


def letters(target: Target) -> tuple[str, list[str]] | None:
    """The right letter, and others that questions of this data set have for an answer."""
    answer = target.prompt.answer.strip("() .")
    others = [other.strip("() .") for other in target.others]
    others = [other for other in others if len(other) == 1 and other.isalpha() and other != answer]
    return (answer, others) if len(answer) == 1 and answer.isalpha() and others else None


def several(target: Target) -> Iterator[str]:
    """The right letter among others."""
    if (known := letters(target)) is None:
        return
    answer, others = known
    for other in others[:3]:
        for between in (" or ", " and ", ", ", "/", " ", "; ", "|", " & ", ""):
            yield from (f"{answer}{between}{other}", f"{other}{between}{answer}")
        yield from filled(SEVERAL, answer, other)
    every = sorted({answer, *others})
    if len(every) > 2:
        yield from (between.join(every) for between in (", ", " ", "", "/", "\n", " or ", ") "))
        yield " ".join(f"({letter})" for letter in every)


def denied(target: Target) -> Iterator[str]:
    """The letter, said not to be the answer, or another one after it."""
    if (known := letters(target)) is not None:
        yield from filled(DENIED, known[0], known[1][0])


def within_a_word(target: Target) -> Iterator[str]:
    """Words and signs that begin with the letter, end with it or hold it."""
    if (known := letters(target)) is not None:
        yield from filled(IN_A_WORD, known[0])


CLASSES = (
    refused(
        CHOICE,
        "several options",
        several,
        "an answer that names another option too is no choice",
        "https://github.com/Liuziyu77/Visual-RFT/issues/79",
    ),
    refused(CHOICE, "denied option", denied, "read the whole answer: the text denies what it names"),
    refused(CHOICE, "letter in a word", within_a_word, "a letter counts where it stands alone"),
)
