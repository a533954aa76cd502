"""What makes two questions alike, as compact keys.

A question is taken apart into its words, with numbers and quoted names masked, and what was masked. Two questions are
near-duplicates when their words are alike and what was masked is equal; the words alone are its template. So 47+38 and
48+38 share a template and are two questions.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from components.tasks.identity import normalise

MASKED = re.compile(r"\"[^\"\n]{1,60}\"|“[^”\n]{1,60}”|(?<!\w)'[^'\n]{1,60}'(?!\w)|\d+(?:[.,]\d+)*")
WORD = re.compile(r"[^\W\d_]+")
GUESSABLE = re.compile(r"(yes|no|true|false|\(?[a-e]\)?\.?|[0-9])", re.IGNORECASE)


class Likeness(NamedTuple):
    """The normalised text, its template, what was masked in it, and the words that are left."""

    normalised: str
    template: str
    masked: str
    words: int


def likeness(text: str) -> Likeness:
    """Take a question apart."""
    even = normalise(text)
    template = MASKED.sub("\0", even)
    return Likeness(even, template, "\n".join(MASKED.findall(even)), len(WORD.findall(template)))


def key(text: str) -> int:
    """64 bits of a text; 0 for an empty one. Of a million texts two share one with a chance of 3 in 10^8."""
    return (
        int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big") or 1
        if text
        else 0
    )


def guessable(answer: str) -> bool:
    """Whether an answer has so few possible values that guessing pays: yes or no, a letter of A to E, one digit."""
    return GUESSABLE.fullmatch(answer.strip()) is not None
