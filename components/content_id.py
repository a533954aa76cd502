"""When two questions are the same question."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_RAISED, _LOWERED = re.compile("[\u00b2\u00b3\u00b9\u2070-\u207f]+"), re.compile("[\u2080-\u209c]+")


def composed(text: str) -> str:
    """Text with Unicode compatibility forms evened out; raised and lowered characters as ``^`` and ``_`` have them."""
    marked = _LOWERED.sub(r"_\g<0>", _RAISED.sub(r"^\g<0>", text))
    return unicodedata.normalize("NFKC", marked)


def normalise(text: str) -> str:
    """Text with Unicode compatibility forms, letter case and white space evened out; equal means duplicate."""
    return " ".join(composed(text).casefold().split())


def content_id(task: str, text: str) -> str:
    """16 hex digits that depend on the task and the normalised text only."""
    return hashlib.sha256(f"{task}\n{normalise(text)}".encode()).hexdigest()[:16]
