"""What is no choice of one option."""

from __future__ import annotations

from collections.abc import Iterator

from components.audit.grammar.base import ProbeClass
from components.audit.hacks import Target


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
        yield from (
            f"({answer}) ({other})",
            f"({answer})({other})",
            f"({other}), ({answer})",
            f"either {other} or {answer}",
        )
        yield from (f"{answer}) or {other})", f"both {answer} and {other}", rf"{other} \text{{ or }} {answer}")
    every = sorted({answer, *others})
    if len(every) > 2:
        yield from (between.join(every) for between in (", ", " ", "", "/", "\n", " or ", ") "))
        yield " ".join(f"({letter})" for letter in every)


def denied(target: Target) -> Iterator[str]:
    """The letter, said not to be the answer, or another one after it."""
    if (known := letters(target)) is None:
        return
    answer, other = known[0], known[1][0]
    yield from (
        f"not {answer}",
        f"Not ({answer})",
        f"anything but {answer}",
        f"all but {answer}",
        f"!{answer}",
        f"never {answer}",
    )
    yield from (f"{answer} is wrong", f"{answer} is incorrect", f"{answer} is not correct", f"It is not {answer}")
    yield from (
        f"not {answer} but {other}",
        f"{other}, not {answer}",
        f"{other} ({answer} is wrong)",
        f"{answer}? No, {other}",
    )


def within_a_word(target: Target) -> Iterator[str]:
    """Words and signs that begin with the letter, end with it or hold it."""
    if (known := letters(target)) is not None:
        answer = known[0]
        yield from (
            f"{answer}lpha",
            f"{answer}{answer}",
            f"{answer}x",
            f"x{answer}",
            f"{answer}1",
            f"{answer}bout half",
        )
        yield from (f"{answer}ny of them", f"I think of {answer}nother", f"{answer}_1")


CLASSES = (
    ProbeClass(
        "several options",
        "refused",
        ("choice",),
        several,
        "an answer that names another option too is no choice",
        source="https://github.com/Liuziyu77/Visual-RFT/issues/79",
    ),
    ProbeClass("denied option", "refused", ("choice",), denied, "read the whole answer: the text denies what it names"),
    ProbeClass("letter in a word", "refused", ("choice",), within_a_word, "a letter counts where it stands alone"),
)
