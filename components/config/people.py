"""Names of people, as they are typed and as they are compared."""

from __future__ import annotations

import unicodedata

LONGEST = 200
"""Characters of a name."""
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories of what does not show, or changes how the rest shows."""
BLANK = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xFFF0, 0xFFF9),
            *range(0xE0000, 0xE1000),
        ),
    )
)
"""What does not show either, in other categories: what Unicode calls default ignorable, and the empty Braille cell."""
BETWEEN = ", "
"""Stands between the names of several people."""


def person(name: str) -> str:
    """The form in which two spellings of one name are equal: case, width and spaces do not distinguish people."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def check_by(name: str) -> str:
    """``name`` as somebody states something under it, without the spaces around it.

    Raises:
        ValueError: as `check_name`, or it reads like the names of several people.
    """
    if BETWEEN.strip() in person(name):
        raise ValueError(f"the name {name!r} holds a comma, which stands between the names of several people")
    return check_name(name)


def check_name(name: str) -> str:
    """``name`` without the spaces around it.

    Raises:
        ValueError: it is empty, too long, or holds characters that do not show.
    """
    if unseen := [f"U+{ord(character):04X}" for character in name if character in BLANK]:
        raise ValueError(f"a name holds characters that do not show: {' '.join(unseen)}")
    return check_recorded_name(name)


def check_recorded_name(name: str) -> str:
    """The same by what earlier versions took, so that what they recorded is read.

    Raises:
        ValueError: it is empty, too long, or holds characters that do not show.
    """
    if not name.strip():
        raise ValueError("a name is empty")
    if len(name) > LONGEST:
        raise ValueError(f"a name has {len(name)} characters, {LONGEST} are allowed")
    if any(unicodedata.category(character) in UNSEEN for character in name):
        raise ValueError(f"the name {name!r} holds characters that do not show")
    return name.strip()
