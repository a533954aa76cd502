"""What counts as a number in a log, and JSON objects out of lines that may be anything."""

from __future__ import annotations

import json
import math
import re
from typing import Any

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_NOT_FINITE = re.compile(r"[-+]?(?:nan|inf(?:inity)?)", re.IGNORECASE)

MOST_STEPS = 2**53
"""From here on a float no longer distinguishes successive whole numbers."""


def as_number(value: Any) -> float | None:
    """A number as a float, NaN and infinity included; None for everything else.

    Text is no number, whatever it spells; only the names of NaN and infinity, which some JSON writers put into quotes,
    are taken for what they say: a broken number must not pass for a missing one.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return float(value) if isinstance(value, str) and _NOT_FINITE.fullmatch(value.strip()) else None


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object that the text is, or None."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def as_step(value: Any) -> int | None:
    """The number of a step: whole, at least 0 and below `MOST_STEPS`; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < MOST_STEPS:
        return None
    return int(value) if value == int(value) else None
