"""What makes two questions alike, as compact keys.

A question is taken apart into its words, with numbers and quoted texts masked, and what was masked. Two questions are
near-duplicates when their words are alike and what was masked is equal; the words alone are its template. So 47+38 and
48+38 share a template and are two questions. Spaces, punctuation that is no mathematics and characters that show
nothing are left out of the words: they are what a copy is varied with at no cost.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import cache
from typing import NamedTuple

from components.content_id import composed, normalise
from components.rewards.answers import last_box
from components.rewards.grammar.scan import one_value

MASKED = re.compile(r"\"[^\"\n]{1,60}\"|“[^”\n]{1,60}”|(?<!\w)'[^'\n]{1,60}'(?!\w)|\d+(?:[.,]\d+)*")
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts without spaces between words: Chinese, Japanese, Thai, Lao, Burmese, Khmer. A character counts as a word."""
WORD = re.compile(rf"[{UNSPACED}]|[^\W\d_{UNSPACED}]{{2,}}")
INSIDE = re.compile(r"(?<=[^\W_][ ,;] )(?:[^\W\d_]['’]?)+|(?<=[^\W_] )(?:[^\W\d_]['’]?)+")
"""A word that begins no sentence: after a word, or a comma or semicolon."""
SIGN = re.compile(r"[^\w \0]|_")
NAME_WORDS = 5
"""A template of which masked names leave fewer words is left as it is, as is one of which they are the larger part."""
MATHEMATICS = frozenset("*/%()[]{}\\'′″·&")
"""Punctuation that can change what is asked."""
OPTION = re.compile(r"[^\w+-]*([a-z])[^\w+-]*")
SHORT_ANSWER = 40
"""Characters of a text that is read as a number, which takes long."""
PLAIN_DIGITS = 18
LARGEST_BITS = 4000
"""Of a numerator or denominator that is written out."""
GUESSABLE = re.compile(r"(yes|no|true|false|\(?[a-e]\)?\.?|[0-9])", re.IGNORECASE)


class Likeness(NamedTuple):
    """A question taken apart.

    ``normalised`` is its plain normal form. ``template`` has numbers and quoted texts masked, ``nameless`` names inside
    sentences as well (equal to ``template`` where too little would be left); ``masked`` is what the template masks, and
    ``words`` counts the words that it has.
    """

    normalised: str
    template: str
    nameless: str
    masked: str
    words: int


def likeness(text: str, longest: int | None = None) -> Likeness:
    """Take a question apart; of a text longer than ``longest`` characters only the beginning is looked at for likeness.

    The template of a text without words is a formula, of which every character counts.
    """
    normalised = normalise(text)
    seen = visible(text if longest is None else text[:longest])
    even = normalise(seen)
    template, masked = MASKED.sub("\0", even), "\n".join(MASKED.findall(even))
    words = len(WORD.findall(template))
    if not words:
        return Likeness(normalised, template, template, masked, 0)
    plain = bare(template)
    return Likeness(normalised, plain, _nameless(seen, words) or plain, masked, words)


def visible(text: str) -> str:
    """The text without control and format characters (Cc, Cf), such as zero-width spaces; white space stays."""
    if text.isprintable():
        return text
    return "".join(c for c in text if c.isspace() or unicodedata.category(c) not in {"Cc", "Cf"})


def bare(template: str) -> str:
    """The template with one space between words, and only the punctuation that can change what is asked."""

    def kept(found: re.Match[str]) -> str:
        at = found.start()
        return found[0] if _kept(found[0], template[max(at - 2, 0) : at], template[at + 1 : at + 3]) else ""

    return " ".join(SIGN.sub(kept, template).split())


def _kept(c: str, before: str, after: str) -> bool:
    kind = category(c)
    if kind == "Pd":  # minus, unless letters of a word are next to it
        return not ((len(before) == 2 and before.isalpha()) or (len(after) == 2 and after.isalpha()))
    return not kind.startswith("P") or c in MATHEMATICS or (c == "!" and before.endswith("\0"))


category = cache(unicodedata.category)


def _nameless(seen: str, words: int) -> str | None:
    """The bare template with names masked: capitalised words that stand inside a sentence, wherever they stand. None
    where there are none, or too little would be left."""
    even = " ".join(composed(seen).split())
    names = {name for name in INSIDE.findall(even) if len(name) > 1 and name[0].isupper()}
    if not names:
        return None
    named = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})(?!\w)")
    masked = re.sub(r"\0(?:\s*\0)+", "\0", bare(MASKED.sub("\0", normalise(named.sub("\0", even)))))
    left = len(WORD.findall(masked))
    return masked if left >= NAME_WORDS and 2 * left >= words else None


def key(text: str) -> int:
    """64 bits of a text; 0 for an empty one. Of a million texts two share one with a chance of 3 in 10^8."""
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return (int.from_bytes(digest, "big") or 1) if text else 0


def even_answer(answer: str) -> str:
    """An answer in the form that its other ways of writing share, for counting: what the last box holds, an exact
    number for a short answer that is one (1,000 and $1000), a letter for an option ((B), **B**, B.)."""
    boxed = last_box(answer)
    even = " ".join((answer if boxed is None else boxed).casefold().split()).rstrip(".")
    if option := OPTION.fullmatch(even):
        return option[1]
    if even.isascii() and even.isdigit() and len(even) <= PLAIN_DIGITS:
        return str(int(even))  # what `one_value` would find, which takes long
    found = one_value(even) if len(even) <= SHORT_ANSWER else None
    return even if found is None or max(map(int.bit_length, found.as_integer_ratio())) > LARGEST_BITS else str(found)


def guessable(answer: str) -> bool:
    """Whether an answer has so few possible values that guessing pays: yes or no, a letter of A to E, one digit."""
    return GUESSABLE.fullmatch(answer.strip()) is not None
