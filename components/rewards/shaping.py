"""Reward parts besides the raw accuracy. They are added after it and never change it."""

from __future__ import annotations


def soft_overlong(length: int, limit: int, cache: int) -> float:
    """DAPO's soft overlong punishment (2503.14476, equation 13), with a floor of -1.

    Args:
        length: tokens of the completion, end token included.
        limit: length from which the punishment is -1.
        cache: tokens below ``limit`` over which it falls from 0 to -1.
    """
    return max(-1.0, min(0.0, (limit - cache - length) / cache))
