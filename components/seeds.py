"""Random streams that depend on what they are for, not on what ran before: so resume equals no-resume."""

from __future__ import annotations

import hashlib


def derive(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed for one purpose, e.g. ``derive(0, "rollout", step, attempt)``.

    Distinct purposes give independent streams; the same purpose gives the same stream on every machine.
    """
    text = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
