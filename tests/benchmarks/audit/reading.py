"""How a careless verifier reads an answer. Nothing here is shared with the audit or with the verifiers."""

from __future__ import annotations

import re
from fractions import Fraction

from components.types import Prompt

MARKER = "####"
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:/\d+)?", re.ASCII)


def after_marker(text: str) -> str:
    """What follows the last marker; nothing where there is none."""
    return text.rpartition(MARKER)[2].strip() if MARKER in text else ""


def boxes(text: str) -> list[str]:
    r"""What stands in every ``\boxed{}``, brackets counted."""
    found = []
    for begin in (match.end() for match in re.finditer(r"\\boxed\{", text)):
        depth = 1
        for at in range(begin, len(text)):
            depth += (text[at] == "{") - (text[at] == "}")
            if not depth:
                found.append(text[begin:at])
                break
    return found


def said(text: str) -> str:
    """The answer: in the last box, or after the last marker."""
    found = boxes(text)
    return found[-1].strip() if found else after_marker(text)


def number(text: str) -> Fraction | None:
    """The value of a text that is one number."""
    plain = text.strip().replace(",", "").strip("$ ")
    if len(plain) > 40 or not NUMBER.fullmatch(plain) or re.search(r"/0+\Z", plain):
        return None
    return Fraction(plain)


def numbers(text: str) -> list[Fraction]:
    """Every number in a text."""
    return [value for found in NUMBER.findall(text) if (value := number(found.strip(","))) is not None]


def wanted(prompt: Prompt) -> Fraction | None:
    """The value of the reference answer, where it is a number."""
    return number(prompt.answer)


def is_right(prompt: Prompt, text: str) -> bool:
    """The text is the reference, or the number that it is."""
    value = number(text)
    return text.strip() == prompt.answer or (value is not None and value == wanted(prompt))
