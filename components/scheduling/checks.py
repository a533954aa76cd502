"""What a field of a saved state may hold. Each check gives the value, or raises ValueError with the field's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SUM = 1e-6
"""How far shares may be from 1 in all: rounding, and no more."""


def whole(state: Mapping[str, Any], field: str) -> int:
    """A whole number that is not negative."""
    value = state[field]
    if type(value) is not int or value < 0:
        raise misfit(field, value, "a whole number from 0 on")
    return value


def share(state: Mapping[str, Any], field: str) -> float:
    """A number in [0, 1]."""
    value = state[field]
    if not _is_share(value):
        raise misfit(field, value, "a number from 0 to 1")
    return float(value)


def shares(state: Mapping[str, Any], field: str, count: int) -> list[float]:
    """``count`` numbers in [0, 1]."""
    values = state[field]
    if not isinstance(values, list) or len(values) != count or not all(map(_is_share, values)):
        raise misfit(field, values, f"{count} numbers from 0 to 1")
    return [float(value) for value in values]


def distribution(state: Mapping[str, Any], field: str, count: int) -> list[float]:
    """``count`` numbers above 0 that add up to 1."""
    values = state[field]
    fits = (
        isinstance(values, list) and len(values) == count and all(_is_number(value) and value > 0 for value in values)
    )
    if not fits or not abs(sum(values) - 1) <= SUM:
        raise misfit(field, values, f"{count} numbers above 0 that add up to 1")
    return [float(value) for value in values]


def positions(state: Mapping[str, Any], field: str, sizes: list[int], count: int) -> list[list[int]]:
    """For each of ``sizes`` a list of ``count`` ascending positions below it."""
    lists = state[field]
    if not isinstance(lists, list) or len(lists) != len(sizes) or not all(map(_is_ascending, lists, sizes)):
        raise misfit(field, lists, f"ascending positions in clusters of {sizes} prompts")
    if any(len(values) != count for values in lists):
        raise misfit(field, lists, f"{count} positions a cluster")
    return [list(values) for values in lists]


def misfit(field: str, value: object, wanted: str) -> ValueError:
    return ValueError(f"state does not fit: {field} is {repr(value)[:80]}, not {wanted}")


def _is_number(value: object) -> bool:
    """True is a number to Python and none to JSON; NaN passes, and compares with nothing."""
    return type(value) in (int, float)


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_ascending(values: object, size: int) -> bool:
    if not isinstance(values, list) or any(type(value) is not int for value in values):
        return False
    return sorted(set(values)) == values and all(0 <= value < size for value in values)
