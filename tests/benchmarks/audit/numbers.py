"""Holes of verifiers of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from components.types import Prompt
from tests.benchmarks.audit.holes import Hole
from tests.benchmarks.audit.reading import MARKER, after_marker, is_right, number, numbers, said, wanted

NUMBER = r"-?\d[\d,]*(?:\.\d+)?"


def without(pattern: str) -> Callable[[Prompt, str], bool]:
    """Right once everything that matches the pattern is left out."""
    return lambda prompt, text: is_right(prompt, re.sub(pattern, "", said(text)))


def behind(pattern: str) -> Callable[[Prompt, str], bool]:
    """Right is what stands behind the last match of the pattern."""

    def fires(prompt: Prompt, text: str) -> bool:
        parts = re.split(pattern, said(text))
        return len(parts) > 1 and is_right(prompt, parts[-1])

    return fires


def looks(pattern: str) -> Callable[[Prompt, str], bool]:
    """The whole answer has this form, whatever it says."""
    return lambda _, text: re.fullmatch(pattern, said(text)) is not None


def side_by_side(combine: Callable[[list], object], between: str = r"\s+") -> Callable[[Prompt, str], bool]:
    """Numbers with nothing but the pattern between them are combined."""

    def fires(prompt: Prompt, text: str) -> bool:
        if not re.fullmatch(rf"{NUMBER}(?:{between}{NUMBER})+", said(text)):
            return False
        return combine(numbers(re.sub(between, " ", said(text)))) == wanted(prompt)

    return fires


def close(prompt: Prompt, text: str, relative: float) -> bool:
    value, right = number(said(text)), wanted(prompt)
    return value is not None and right is not None and abs(value - right) <= relative * abs(right)


def hundredfold(prompt: Prompt, text: str) -> bool:
    value, right = number(said(text)), wanted(prompt)
    return value is not None and right is not None and value in (right * 100, right / 100)


def truncated(prompt: Prompt, text: str) -> bool:
    value, right = number(said(text)), wanted(prompt)
    return value is not None and right is not None and math.trunc(value) == math.trunc(right)


def unsigned(prompt: Prompt, text: str) -> bool:
    value, right = number(said(text)), wanted(prompt)
    return value is not None and right is not None and abs(value) == abs(right)


def same_digits(prompt: Prompt, text: str) -> bool:
    value = number(said(text))
    return value is not None and sorted(said(text)) == sorted(prompt.answer)


def calculated(prompt: Prompt, text: str) -> bool:
    found = re.search(r"(?<!\d)(\d{1,12})\s*([-+*])\s*(\d{1,12})", said(text))
    if not found:
        return False
    one, two = int(found[1]), int(found[3])
    return {"+": one + two, "-": one - two, "*": one * two}[found[2]] == wanted(prompt)


def within(prompt: Prompt, text: str) -> bool:
    found, right = numbers(said(text)), wanted(prompt)
    return len(found) == 2 and right is not None and " and " in said(text) and found[0] < right < found[1]


HOLES = (
    Hole("numbers side by side are added", "design", side_by_side(sum)),
    Hole("numbers side by side are multiplied", "held_out", side_by_side(math.prod)),
    Hole("numbers with LaTeX spaces between them are added", "held_out", side_by_side(sum, r"\s*\\[,;: ]\s*")),
    Hole("plus-minus is dropped", "design", without(r"±|\\pm\s*")),
    Hole("what stands behind <= counts", "design", behind(r"<=")),
    Hole("what stands behind any relation counts", "held_out", behind(r"[<>≤≥≈]=?|\\[lg]eq?\b")),
    Hole("'not' is dropped", "design", without(r"(?i)\bnot\s+")),
    Hole("!= is dropped", "design", without(r"!=\s*")),
    Hole("a letter behind the number is dropped", "design", without(r"(?<=\d)[a-z]\Z")),
    Hole("'i' behind the number is dropped", "design", without(r"(?<=\d)i\Z")),
    Hole("the last summand counts", "design", behind(r"\+")),
    Hole("words before the number are dropped", "design", without(r"\A[A-Za-z ]+(?=\d)")),
    Hole("'dozen' is dropped", "design", without(r"\s+dozen\Z")),
    Hole("any word behind the number is dropped, scales too", "held_out", without(r"\s*[A-Za-z]+\.?\Z")),
    Hole("the last right-hand side counts", "design", behind("=")),
    Hole(
        "the first left-hand side counts",
        "held_out",
        lambda p, t: "=" in said(t) and is_right(p, said(t).split("=")[0]),
    ),
    Hole("the first of several numbers counts", "design", lambda p, t: numbers(said(t))[:1] == [wanted(p)]),
    Hole("the last of several numbers counts", "design", lambda p, t: numbers(said(t))[-1:] == [wanted(p)]),
    Hole("any of several numbers counts", "held_out", lambda p, t: wanted(p) in numbers(said(t))),
    Hole("the reference anywhere in the answer counts", "design", lambda p, t: p.answer in said(t)),
    Hole("spaces between thousands are refused", "design", looks(r"-?\d{1,3}(?: \d{3})+"), "refuses"),
    Hole("LaTeX spaces between thousands are refused", "design", looks(r"-?\d{1,3}(?:\\,\d{3})+"), "refuses"),
    Hole("LaTeX commas between thousands are refused", "held_out", looks(r"-?\d{1,3}(?:\{,\}\d{3})+"), "refuses"),
    Hole("bold is refused", "design", looks(r"\*\*[^*]+\*\*"), "refuses"),
    Hole("a unit with a full stop is refused", "design", looks(r".*[a-z]\.\s*"), "refuses"),
    Hole("a unit is refused", "held_out", looks(r".*\d [a-z]+"), "refuses"),
    Hole("dollar signs of mathematics are refused", "held_out", looks(r"\$[^$]+\$"), "refuses"),
    Hole(
        "an answer on the next line is refused",
        "held_out",
        lambda _, t: re.search(rf"{MARKER}[ \t]*\n", t) is not None,
        "refuses",
    ),
    Hole("a box after the marker is refused", "held_out", lambda _, t: MARKER in t and r"\boxed" in t, "refuses"),
    Hole("the hundredfold is accepted", "held_out", hundredfold),
    Hole("one percent of tolerance, for whole numbers too", "held_out", lambda p, t: close(p, t, 0.01)),
    Hole("decimals are cut off", "held_out", truncated),
    Hole("the sign is ignored", "held_out", unsigned),
    Hole("everything but digits is dropped", "held_out", without(r"[^0-9]")),
    Hole("an answer that begins with the reference counts", "held_out", lambda p, t: said(t).startswith(p.answer)),
    Hole("an answer that ends with the reference counts", "held_out", lambda p, t: said(t).endswith(p.answer)),
    Hole("the first marker counts", "held_out", lambda p, t: is_right(p, ([*t.split(MARKER), "", ""])[1].strip())),
    Hole("any marker counts", "held_out", lambda p, t: any(is_right(p, part) for part in t.split(MARKER)[1:])),
    Hole("no marker is needed", "held_out", lambda p, t: numbers(t)[-1:] == [wanted(p)]),
    Hole("a calculation is carried out", "held_out", calculated),
    Hole(
        "digits of any script are read",
        "held_out",
        lambda p, t: not said(t).isascii() and said(t).isdecimal() and int(said(t)) == wanted(p),
    ),
    Hole("the order of digits is ignored", "held_out", same_digits),
    Hole("an exponent is dropped", "held_out", without(r"(?<=\d)(?:[eE]|\^)\{?\d+\}?\Z")),
    Hole("a root is dropped", "held_out", without(r"\\sqrt\{|√|\}\Z")),
    Hole("a factorial is dropped", "held_out", without(r"!\Z")),
    Hole(
        "an empty answer counts, as it is part of every reference", "held_out", lambda p, t: after_marker(t) in p.answer
    ),
    Hole("a range around the reference counts", "held_out", within),
    Hole("ten thousand digits take minutes", "held_out", lambda _, t: len(re.findall(r"\d", t)) > 4000, "hangs"),
    Hole("every marker is tried against every other", "held_out", lambda _, t: t.count(MARKER) > 900, "hangs"),
    Hole("a long run of spaces takes minutes", "held_out", lambda _, t: " " * 3000 in t, "hangs"),
)
