"""Text that others wrote, as it is printed: shown and never obeyed.

A terminal obeys escapes and carriage returns, and a reader believes what bidirectional marks put elsewhere. Here each
such character is spelled out, so that what is printed of a record is what it holds, and stays on its line.
"""

from __future__ import annotations

import unicodedata

OBEYED = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories that are spelled out: controls, format characters (bidirectional marks, zero widths), halves of
characters, private ones, and separators of lines and paragraphs."""
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: object, keep: str = "") -> str:
    """``text`` with every character spelled out that would be obeyed instead of shown, but for those in ``keep``.

    Line breaks are spelled out too: a field of a record that is printed is one line, and makes no other.
    """
    raw = str(text)
    return raw if raw.isprintable() else "".join(c if c in keep else _spelled(c) for c in raw)


def block(text: object) -> str:
    """The same for text of several lines, such as a log: line breaks and tabs stay."""
    return printable(text, "\n\t")


def message(text: object) -> str:
    """The same as one part of a message: lines after the first are indented, so that nothing that a message quotes can
    pass for a line of its own."""
    first, *rest = block(text).split("\n")
    return "\n".join([first, *(line if not line or line[0] == " " else f"  {line}" for line in rest)])


def shortened(text: str, most: int) -> str:
    """The first ``most`` characters, and how many more there are."""
    rest = len(text) - most
    return text if rest <= 0 else f"{text[:most]} … [{rest:,} more characters]"


def _spelled(character: str) -> str:
    if unicodedata.category(character) not in OBEYED:
        return character
    code = ord(character)
    return _NAMED.get(character) or (f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")
