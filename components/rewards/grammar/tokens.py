"""The signs of an answer: numbers, letters, words, names, operators."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from components.rewards.grammar.nodes import MAX_DEPTH, MAX_TOKENS, Node, NotRead, number
from components.rewards.grammar.prose import KNOWN, words
from components.rewards.units import known_unit

DIGITS = 4000
"""A longer number is not read."""
MAX_EXPONENT = 4000


class Token(NamedTuple):
    """``kind``: number, base, letter, word (prose), name (a command or function), sign, end. ``at``: its place."""

    kind: str
    text: str
    at: int
    spaced: bool
    """White space stands before it."""


_SPACE = r"[ \u00a0\u2009\u202f]|\\[,;: ]|~"
_COMMA = r"\{,(?:\\!)?\}(?:\\!)?|,\\!|\\!,?"
_EXPONENT = r"(?:[eE][-+]?[0-9]{1,9}(?![0-9A-Za-z]))?"
_DECIMALS = r"(?![0-9])(?:\.[0-9]+)?"
_GROUPED = rf"[1-9][0-9]{{0,2}}(?:(?P<sep>{_SPACE}|{_COMMA}|'%s)[0-9]{{3}}(?:(?P=sep)[0-9]{{3}})*){_DECIMALS}"
_LAKH = rf"[1-9][0-9]?(?:,[0-9]{{2}})+,[0-9]{{3}}{_DECIMALS}"
_DOTS = r"(?P<dots>[1-9][0-9]{0,2}(?:(?:\.[0-9]{3}){2,}(?:,[0-9]+)?|(?:\.[0-9]{3})+,[0-9]+)(?![0-9]))"
_REPEATING = r"[0-9]*\.[0-9]*\\(?:overline|bar|dot)\s*\{[0-9]+\}|[0-9]+\.\([0-9]+\)"
_PLAIN = rf"{_REPEATING}|[0-9]+(?:\.[0-9]+)?|\.[0-9]+"
_CONTINENTAL = r"(?P<dots>(?:[1-9][0-9]{0,2}(?:\.[0-9]{3})+(?![0-9])|[0-9]+)(?:,[0-9]+)?)"
BASE_NAMES = (
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen",
)  # fmt: skip
"""Of 2 to 16."""
_BASE_NAME = re.compile(rf"(?<![a-z])(?:{'|'.join(BASE_NAMES)})(?![a-z])")
_BASE = (
    r"[0-9][0-9A-Za-z]*(?:\.[0-9A-Za-z]+)?\s*_\s*(?:[0-9]{1,2}|\{\s*\(?\s*(?:\\(?:text|mathrm|rm)\s*\{)?\s*(?:base)?"
    r"[\s\\,~]*(?:[0-9]{1,2}|" + "|".join(BASE_NAMES) + r")\s*\}?\s*\)?\s*\})"
)
_REST = (
    r"(?P<space>\s+|~(?!~)|\\[,;:! ]|\\q?quad(?![A-Za-z])|\\(?:thin|med|thick)space(?![A-Za-z]))"
    r"|(?P<text>\\(?:text|mathrm|textbf|textit|textrm|mbox|hbox|operatorname|rm|mathop)\s*\{[^{}]*\})"
    r"|\\(?P<name>[A-Za-z]+)|(?P<letters>[A-Za-z]+(?:'[a-z]{1,2}(?![A-Za-z]))?)"
    r"|(?P<sign>\*\*|~~+|<=|>=|=<|=>|!=|==|:=|\\\\|\\[{}|%$&#_]|[^\s])"
)


def _pattern(numbers: str) -> re.Pattern[str]:
    return re.compile(f"(?P<base>{_BASE})|(?P<number>{numbers})|{_REST}")


_READINGS = {
    "usual": _pattern(f"(?:{_LAKH}|{_GROUPED % '|,'}|{_DOTS}|{_PLAIN}){_EXPONENT}"),
    "apart": _pattern(f"(?:{_GROUPED % ''}|{_PLAIN}){_EXPONENT}"),
    "continental": _pattern(f"{_LAKH}|{_GROUPED % '|,'}|{_CONTINENTAL}"),
}
READINGS = tuple(_READINGS)
"""How a comma or a point between digits is read: thousands; a separator of items; the decimal comma."""
_SYNONYMS = {
    **dict.fromkeys(("cdot", "times", "ast", "star"), "*"),
    **dict.fromkeys(("div", "slash"), "/"),
    **dict.fromkeys(("le", "leq", "leqslant", "=<"), "<="),
    **dict.fromkeys(("ge", "geq", "geqslant", "=>"), ">="),
    **dict.fromkeys(("ne", "neq"), "!="),
    **{"lt": "<", "gt": ">", "==": "=", ":=": "=", "**": "^", "pm": "±", "approx": "≈", "simeq": "≈", "sim": "≈"},
    **{r"\%": "%", r"\$": "$", "lbrace": r"\{", "rbrace": r"\}", "vert": "|", "lvert": "|", "rvert": "|", "mid": "|"},
    **{"lbrack": "[", "rbrack": "]", "colon": ":", "equiv": "=", "euro": "€", "pounds": "£", r"\&": "&"},
}
FUNCTIONS = words("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh ln log lg exp sqrt gcd lcm max min abs")
_CAPITALS, _VARIABLES = "MSGHDT", "dtwj"
"""What is no unit although its small letter is, and what is a unit less often than a variable."""
_ALSO_UNITS = frozenset(("min", "sec", "max"))
NAMED_BY_LETTERS = ("angle", "triangle")
CONSTANTS = {"pi": "pi", "infty": "infinity", "infinity": "infinity", "inf": "infinity", "oo": "infinity"}
_SEPARATORS = ("and", "or")
_ORDINAL = frozenset(("st", "nd", "rd", "th"))


def lex(text: str, reading: str = "usual", letters: bool = True) -> list[Token]:
    """The tokens of an undressed text, with an end. ``letters``: a letter behind a number may be a variable.

    In a text with a comma and a space, as in a list, the other commas are those of thousands; without one, commas
    inside brackets separate items.

    Raises:
        NotRead: there are more tokens or longer numbers than anybody writes.
    """
    found: list[Token] = []
    spaced, at, depth = False, 0, 0
    listed = re.search(r",\s", text) is not None
    while at < len(text):
        pattern = _READINGS["apart" if reading == "usual" and depth and not listed else reading]
        match = pattern.match(text, at)
        assert match is not None and match.lastgroup is not None
        kind = next(name for name in _KINDS if match[name] is not None)
        if kind == "space":
            spaced = True
        else:
            for token in _tokens(kind, match, found[-1] if found else None, spaced, letters, text):
                found.append(token)
                depth += (token.text in _OPENING) - (token.text in _CLOSING)
                spaced = False
        at = match.end()
        if len(found) > MAX_TOKENS or match.end() - match.start() > DIGITS:
            raise NotRead("it is longer than anybody writes")
    return [*_times(found), Token("end", "", len(text), spaced)]


_KINDS = ("base", "number", "space", "text", "name", "letters", "sign")
_OPENING, _CLOSING = frozenset(("(", "[", r"\{")), frozenset((")", "]", r"\}"))


def _tokens(kind: str, match: re.Match[str], last: Token | None, spaced: bool, letters: bool, text: str) -> list[Token]:
    at, value = match.start(), match[kind]
    if kind == "text":
        inner = value[value.index("{") + 1 : -1].strip()
        if inner in _ALSO_UNITS and match.end() == len(text) and last is not None and last.kind == "number":
            return [Token("word", inner, at, spaced)]
        return _dressed(inner, at, spaced)
    if kind == "name":
        if value in FUNCTIONS or value in CONSTANTS:
            return [Token("name", CONSTANTS.get(value, value), at, spaced)]
        sign = _SYNONYMS.get(value)
        return [Token("sign", sign, at, spaced) if sign else Token("name", value, at, spaced)]
    if kind == "letters":
        return _letters(value, at, last, spaced, letters, text)
    if kind == "number":
        value = _plain_digits(value, dots="dots" in match.re.groupindex and match["dots"] is not None)
    return [Token(kind, _SYNONYMS.get(value, value), at, spaced)]


def _plain_digits(value: str, dots: bool) -> str:
    """``1234.5e3``, whatever separated thousands; what repeats stands in brackets."""
    if dots:
        return value.replace(".", "").replace(",", ".")
    plain, repeated = (*re.split(r"\\[a-z]+|(?=\()", value, maxsplit=1), "")[:2]
    digits = re.sub(r"[^0-9.eE+-]", "", plain)
    return f"{digits}({re.sub('[^0-9]', '', repeated)})" if repeated else digits


def _dressed(inner: str, at: int, spaced: bool) -> list[Token]:
    """What stands in ``\\text{}``: words, a separator, one letter. Digits in it are no part of the formula around."""
    if any(character.isdigit() for character in inner):
        raise NotRead("a number in a text inside the formula")
    if (separator := inner.strip(" ,").casefold()) in _SEPARATORS:
        return [Token("sign", separator, at, spaced)]
    if inner in FUNCTIONS or inner in CONSTANTS:
        return [Token("name", CONSTANTS.get(inner, inner), at, spaced)]
    if inner in ("%", "$"):
        return [Token("sign", inner, at, spaced)]
    return [Token("word", word, at, spaced) for word in re.findall(r"[^\s:,.;]+", inner)]


def _letters(run: str, at: int, last: Token | None, spaced: bool, letters: bool, text: str) -> list[Token]:
    """A run of letters: a name, a separator, the factors of a product, or a word."""
    small, after = run.casefold(), text[at + len(run) :].lstrip()[:1]
    if small in CONSTANTS or (run in FUNCTIONS and (after == "(" or run not in _ALSO_UNITS)):
        return [Token("name", CONSTANTS.get(small, run), at, spaced)]
    if small in _SEPARATORS:
        return [Token("sign", small, at, spaced)]
    if _is_word(run, at, last, spaced, letters, text, after):
        return [Token("word", run, at, spaced)]
    return [Token("letter", letter, at + i, spaced and not i) for i, letter in enumerate(run)]


def _is_word(run: str, at: int, last: Token | None, spaced: bool, letters: bool, text: str, after: str) -> bool:
    behind = last is not None and (last.kind == "number" or last.text in ("}", ")", "°"))
    unit = known_unit(run) is not None
    if last is not None and last.text in NAMED_BY_LETTERS:
        return False
    if unit and last is not None and last.text == "/" and not spaced and (len(run) > 2 or _word_before(text, last.at)):
        return True
    if len(run) == 1:
        degrees = last is not None and last.text == "°" and run in "CFK"
        unlikely = run in _CAPITALS or (letters and (not spaced or run in _VARIABLES))
        return degrees or (behind and unit and not unlikely) or (run in "aAI" and _in_prose(text, at))
    if (behind and unit) or "'" in run or (run in _ORDINAL and last is not None and last.kind == "number"):
        return True
    if last is not None and not spaced and (behind or last.kind in ("letter", "name")):
        return False
    if len(run) == 2:
        return run.casefold() in KNOWN
    operator = after in tuple("+-*^_") or (last is not None and last.text in "+-*^")
    return len(run) > 3 or run.casefold() in KNOWN or unit or not operator


def _word_before(text: str, at: int) -> bool:
    """Letters stand right before a slash: it is one between units."""
    return at > 0 and (text[at - 1].isalpha() or text[at - 1] == "}")


def _in_prose(text: str, at: int) -> bool:
    return re.match(r"[aAI]\s+[A-Za-z]{2}|[aAI]\s+(?:\$|[0-9])", text[at : at + 8]) is not None and (
        at == 0 or text[at - 1].isspace()
    )


def _times(tokens: list[Token]) -> list[Token]:
    """An x between two numbers is a sign of multiplication."""
    for i in range(1, len(tokens) - 1):
        before, here, after = tokens[i - 1 : i + 2]
        between = before.kind == after.kind == "number" and here.spaced == after.spaced
        if here.kind == "letter" and here.text in "xX" and between:
            tokens[i] = here._replace(kind="sign", text="*")
    return tokens


def written(text: str) -> Node:
    """The number of a token: ``12``, ``.5``, ``6.02e23``, ``0.1(6)``.

    Raises:
        NotRead: it has more digits, or a larger exponent, than is read.
    """
    plain, _, repeated = text.rstrip(")").partition("(")
    digits, _, exponent = plain.lower().partition("e")
    if len(digits) > DIGITS or len(exponent) > 6 or abs(int(exponent or "0")) > MAX_EXPONENT:
        raise NotRead("a number with more digits than anybody writes")
    value = Fraction(Decimal(digits.rstrip(".") or "0"))
    if repeated:
        value += Fraction(int(repeated), (10 ** len(repeated) - 1) * 10 ** len(digits.partition(".")[2]))
        return number(value)
    return number(value * Fraction(10) ** int(exponent or "0"), "." in digits or exponent.startswith("-"))


def base_numeral(text: str) -> Node:
    """``2516_8``, ``1A_{16}``, ``101_{\\text{two}}``: the digits and the base."""
    digits, _, rest = text.partition("_")
    figures, name = re.search(r"[0-9]+", rest), _BASE_NAME.search(rest)
    base = int(figures[0]) if figures else BASE_NAMES.index(name[0]) + 2 if name else 0
    return Node("base", (digits.strip().upper().lstrip("0") or "0", base))


class Cursor:
    """Moves over tokens, and counts how deep what it reads is nested."""

    def __init__(self, tokens: Sequence[Token], algebra: bool) -> None:
        self._tokens, self._at, self._depth = [*tokens], 0, 0
        self._algebra = algebra
        self.money = ""
        """The sign of a currency that stands before a number."""

    @property
    def here(self) -> Token:
        """The token that is read next."""
        return self._tokens[self._at]

    def next(self, kind: str, *texts: str) -> bool:
        """Whether the next token is of this kind, and one of ``texts`` where there are any."""
        return self.here.kind == kind and (not texts or self.here.text in texts)

    def take(self) -> Token:
        """The next token; the cursor moves on."""
        token = self.here
        self._at += token.kind != "end"
        return token

    def skip(self, kind: str, *texts: str) -> bool:
        """Move past such a token, where there is one."""
        found = self.next(kind, *texts)
        self._at += found
        return found

    def expect(self, kind: str, *texts: str) -> None:
        """Move past such a token, or NotRead."""
        if not self.skip(kind, *texts):
            raise NotRead(f"{self.here.text!r} stands where {texts or kind} belongs")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotRead("it is nested deeper than anybody writes")
