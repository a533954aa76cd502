"""When two questions are the same question."""

from __future__ import annotations

import hashlib
import unicodedata


def normalise(text: str) -> str:
    """Text with Unicode compatibility forms, letter case and white space evened out; equal means duplicate."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def content_id(task: str, text: str) -> str:
    """16 hex digits that depend on the task and the normalised text only."""
    return hashlib.sha256(f"{task}\n{normalise(text)}".encode()).hexdigest()[:16]
