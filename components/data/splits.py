"""Which split a question belongs to: a matter of its content, never of its place in the file."""

from __future__ import annotations

import hashlib

from components.config.data import SplitSettings
from components.content_id import normalise
from components.types import Split

SPLITS: tuple[Split, ...] = ("sft", "train", "dev", "test")
SALT = "evenkeel/split/1"
"""Part of the data's contract: another salt is another split of every data set."""


def position(text: str) -> float:
    """Where the normalised text falls in [0, 1), evenly spread over texts."""
    digest = hashlib.sha256(f"{SALT}\n{normalise(text)}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48  # 48 bits: exact in a float, and never rounded up to 1


def assign(text: str, shares: SplitSettings) -> Split:
    """The split of a question. Duplicates share theirs, and new rows never move old ones."""
    at, upper = position(text), 0.0
    for split in SPLITS[:-1]:
        upper += getattr(shares, split)
        if at < upper:
            return split
    return SPLITS[-1]
