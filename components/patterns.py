"""Regular expressions of users, run in time that grows with the text and not with its square or worse.

Python's own engine tries again and again: ``####\\s*(.+)$`` takes 37 seconds for 60,000 spaces. RE2 tries everything
at once. It reads nearly what Python reads; here a pattern is rewritten where the two differ, so that ``$`` matches
before a last line break, and ``\\d``, ``\\w`` and ``\\s`` know every script. What remains: ``\\b`` knows ASCII
letters alone, and what needs to try again (look-around, back-references) is refused with a reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from components.printing import shortened

MOST_REPEATED = 1000
"""Repetitions that a pattern can have, such as ``a{1000}``."""
SHOWN = 200
"""Characters of a pattern that an error shows."""
AROUND = "it looks around with {0}: match what stands there too, and put a group around what counts"
BACK = "it refers back with {0}: write out what that group may be"
_SPACES = ((9, 13), (28, 32), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
           (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000))  # fmt: skip
"""What ``\\s`` is in Python, by code point."""
_LAST = 0x10FFFF
_WORD = r"\p{L}\p{N}_"
_REFUSED_GROUPS = {
    "(?=": AROUND,
    "(?!": AROUND,
    "(?<=": AROUND,
    "(?<!": AROUND,
    "(?P=": BACK,
    "(?(": "it decides with {0}: write both cases, with | between them",
    "(?>": "it has {0}: write (?: instead, for nothing is ever tried again",
    "(?#": "it has a comment, {0}: leave it out",
}
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_UP_TO = re.compile(r"\{,([0-9]+)\}")
_HEX = {"u": re.compile("[0-9a-fA-F]{4}"), "U": re.compile("[0-9a-fA-F]{8}")}
_ENGINE_SAYS = {
    "bad repetition operator": "it repeats what repeats already; leave the second sign out, also the + of ++ and *+",
    "invalid repetition size": f"it repeats more than {MOST_REPEATED:,} times, or down from more to fewer",
    "pattern too large": "it is too large; repeat less",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern: its text, and how many groups it has. A group that holds ``$`` itself holds a last line
    break, too."""

    text: str
    groups: int
    _engine: Any

    def search(self, text: str) -> tuple[str | None, ...] | None:
        """The groups of the leftmost match, None where a group took no part; None where nothing matches.

        Half a character (a lone surrogate) reads as a question mark.
        """
        found = self._engine.search(text.encode("utf-8", "replace"))
        if found is None:
            return None
        return tuple(None if part is None else part.decode() for part in found.groups())

    def matches(self, text: str) -> bool:
        """Whether it matches somewhere."""
        return self.search(text) is not None


@lru_cache(maxsize=256)
def compile_pattern(text: str, *, ignore_case: bool = False) -> Pattern:
    """The pattern, ready to search.

    Raises:
        ValueError: it is no regular expression, or needs what RE2 does not have; what to write instead.
    """
    import re2  # where a pattern is used, so that settings load without it

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        engine = re2.compile(_rewritten(text).encode(), options)
    except UnicodeEncodeError as error:
        raise ValueError(f"{_quoted(text)} is no regular expression: it holds half a character") from error
    except re2.error as error:
        said = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        why = next((words for begin, words in _ENGINE_SAYS.items() if said.startswith(begin)), said)
        raise ValueError(f"{_quoted(text)} is no regular expression that can be used: {why}") from error
    return Pattern(text, engine.groups, engine)


def _rewritten(text: str) -> str:
    """The pattern as RE2 has to read it to find what Python would."""
    parts: list[str] = []
    many_lines, at = [False], 0
    while at < len(text):
        sign, part, width = text[at], text[at], 1
        if sign == "\\":
            part, width = _escape(text, at, inside=False)
        elif sign == "[":
            part, width = _class(text, at)
        elif sign == "(":
            part, width = _group(text, at, many_lines)
        elif sign == ")" and len(many_lines) > 1:
            many_lines.pop()
        elif sign == "$" and not many_lines[-1]:
            part = r"(?:\n?\z)"
        elif found := _UP_TO.match(text, at):
            part, width = f"{{0,{found[1]}}}", len(found[0])
        parts.append(part)
        at += width
    return "".join(parts)


def _group(text: str, at: int, many_lines: list[bool]) -> tuple[str, int]:
    """The opening of a group, or flags; ``many_lines`` says for each open group whether ``$`` ends every line."""
    for begin in sorted(_REFUSED_GROUPS, key=len, reverse=True):
        if text.startswith(begin, at):
            raise _refused(text, _REFUSED_GROUPS[begin].format(begin))
    flags = _FLAGS.match(text, at)
    if flags is None:
        many_lines.append(many_lines[-1])
        return "(", 1
    many = ("m" in flags[1] or many_lines[-1]) and "m" not in (flags[2] or "")
    if flags[3] == ":":
        many_lines.append(many)
    else:
        many_lines[-1] = many
    return flags[0], len(flags[0])


def _class(text: str, at: int) -> tuple[str, int]:
    """``[...]``, up to its end."""
    parts, place = ["["], at + 1
    if text.startswith("^", place):
        parts.append("^")
        place += 1
    first = place
    while place < len(text) and (text[place] != "]" or place == first):
        part, width = _escape(text, place, inside=True) if text[place] == "\\" else (text[place], 1)
        parts.append(part)
        place += width
    return "".join([*parts, text[place : place + 1]]), place + 1 - at


def _escape(text: str, at: int, *, inside: bool) -> tuple[str, int]:
    """A backslash and what follows it, ``inside`` a class or not."""
    sign = text[at + 1 : at + 2]
    if sign in ("Q", "E", "C", "N"):
        raise _refused(text, f"\\{sign} is not read: write the characters themselves")
    if sign in _HEX and (code := _HEX[sign].match(text, at + 2)):
        return f"\\x{{{code[0]}}}", 2 + len(code[0])
    if inside:
        if sign == "W":
            raise _refused(text, r"\W inside [...] is not read: for letters alone write \pL, else list the characters")
        known = {"d": r"\p{Nd}", "D": r"\P{Nd}", "w": _WORD, "s": _spaces(), "S": _spaces(False), "b": r"\x08"}
    else:
        if sign.isdigit() and sign != "0":
            raise _refused(text, BACK.format(f"\\{sign}"))
        known = {"d": r"\p{Nd}", "D": r"\P{Nd}", "w": f"[{_WORD}]", "W": f"[^{_WORD}]", "Z": r"\z"}
        known |= {"s": f"[{_spaces()}]", "S": f"[^{_spaces()}]"}
    plain = sign == "_" or not sign.isascii()  # RE2 has no escape of these
    return known.get(sign, sign if plain else f"\\{sign}"), 2


def _spaces(wanted: bool = True) -> str:
    """Ranges of a class: white space, or all else."""
    ranges = list(_SPACES)
    if not wanted:
        ends = [-1, *(end for _, end in _SPACES)]
        begins = [*(begin for begin, _ in _SPACES), _LAST + 1]
        ranges = [(end + 1, begin - 1) for end, begin in zip(ends, begins, strict=True) if end + 1 < begin]
    return "".join(f"\\x{{{begin:x}}}-\\x{{{end:x}}}" for begin, end in ranges)


def _refused(text: str, why: str) -> ValueError:
    return ValueError(f"{_quoted(text)} cannot be used as a pattern: {why}")


def _quoted(text: str) -> str:
    return shortened(repr(text), SHOWN)
