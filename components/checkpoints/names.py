"""Names of files that are the same on every system and in every store."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from components.errors import InputError

LONGEST = 1024
"""Bytes of a path, as S3 allows."""


def check_names(names: Iterable[str], where: Path | str) -> None:
    """Refuse relative paths that could lead elsewhere, hide, or fall together on another system.

    Raises:
        InputError: a path is absolute or too long, holds `..`, a backslash, a colon or a character that does not show,
            ends with a space or a dot; or two differ only by case or by how their letters are encoded.
    """
    seen: dict[str, str] = {}
    for name in names:
        if problem := _problem(name):
            raise InputError(f"the name {name!r} of a file {problem}", where=where, how="rename it, or leave it out")
        alike = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
        if alike in seen:
            what = f"the names {seen[alike]!r} and {name!r} of two files are one on other systems"
            raise InputError(what, where=where, how="rename or remove one of them")
        seen[alike] = name


def _problem(name: str) -> str | None:
    parts = PurePosixPath(name).parts
    if not name or name.startswith("/") or ".." in parts or name != "/".join(parts):
        return "leads elsewhere"
    try:
        if len(name.encode()) > LONGEST:
            return f"has more than {LONGEST} bytes"
    except UnicodeEncodeError:
        return "is not Unicode"
    if any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in name):
        return "holds a character that does not show"
    if "\\" in name or ":" in name:
        return "holds a backslash or a colon"
    return "has a part that ends with a space or a dot" if any(part != part.rstrip(" .") for part in parts) else None
