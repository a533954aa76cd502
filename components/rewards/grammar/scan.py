"""The number that a text is, and the statement with which a running text ends."""

from __future__ import annotations

import re
from fractions import Fraction

from components.rewards.answers import thought_out, unboxed
from components.rewards.grammar.dress import undressed
from components.rewards.grammar.nodes import NotRead, one_number
from components.rewards.grammar.reader import read
from components.rewards.grammar.tokens import Token, lex

WORDS = 2
"""Words before the last number that may change what it says."""
TAIL = 400
"""Characters from the end of a text in which its last statement is looked for."""
_OF_FORMULA = frozenset("+-*/^_=≈<>!±°%|()[]{}$€£¥₹~'") | {r"\{", r"\}", "<=", ">=", "!=", "~~"}
"""Signs that belong to the number next to them."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\d\s])|\n")


def one_value(text: str) -> Fraction | None:
    """The number that a text is as a whole, with its unit, currency or the words around it; None where it is none."""
    try:
        return one_number(read(text, algebra=False).node)
    except NotRead:
        return None


def last_statement(text: str) -> str | None:
    """The part of the last sentence with a number that states the last number of it: the signs of mathematics around,
    the word before and the words behind. None where there is no number, or something that is not read."""
    for sentence in reversed(_SENTENCE.split(thought_out(text)[-TAIL:])):
        if any(character.isdigit() for character in sentence):
            return _statement(unboxed(sentence))
    return None


def _statement(sentence: str) -> str | None:
    try:
        plain = undressed(sentence)
        tokens = lex(plain, letters=False)
    except NotRead:
        return None
    last = max((i for i, token in enumerate(tokens) if token.kind in ("number", "base")), default=None)
    if last is None:
        return None
    first = last
    while first and not _ends(tokens[first - 1]):
        first -= 1
    if first > 1 and tokens[first - 1].text in ("and", "or") and tokens[first - 2].kind == "number":
        return plain[tokens[first - 2].at :]
    words = WORDS if _said_before(tokens[: first + 1], tokens[last]) else 0
    while first and words < WORDS and (tokens[first - 1].kind == "word" or tokens[first - 1].text == "."):
        first -= 1
        words += tokens[first].kind == "word"
    return plain[tokens[first].at :]


def _said_before(tokens: list[Token], last: Token) -> bool:
    """``42 cm =`` stands before the last number, which is 42: the words there are its unit."""
    at = len(tokens) - 1
    while at and tokens[at - 1].kind == "word":
        at -= 1
    said = tokens[at - 1] if 0 < at < len(tokens) - 1 else None
    return tokens[-1].text == "=" and said is not None and said.kind == "number" and said.text == last.text


def _ends(token: Token) -> bool:
    return token.kind == "word" or (token.kind == "sign" and token.text not in _OF_FORMULA)
