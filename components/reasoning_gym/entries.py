"""Entries as JSON. Scorers compare tuples with tuples and look up whole numbers, which JSON alone would turn into lists
and texts."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

TUPLE, PAIRS, FRACTION = "()", "{}", "/"
"""Single keys of the objects that stand for a tuple, for a mapping whose keys are not all texts, and for a fraction."""


def dumps(value: Any) -> str:
    """ASCII JSON text; `loads` gives an equal value back.

    Raises:
        TypeError: a value is neither JSON nor a tuple or a fraction.
    """
    return json.dumps(_packed(value), separators=(",", ":"))


def loads(text: str) -> Any:
    """What `dumps` was given."""
    return _unpacked(json.loads(text))


def _packed(value: Any) -> Any:
    if isinstance(value, tuple):
        return {TUPLE: [_packed(one) for one in value]}
    if isinstance(value, Fraction):
        return {FRACTION: str(value)}
    if isinstance(value, list):
        return [_packed(one) for one in value]
    if not isinstance(value, dict):
        return value
    if all(isinstance(key, str) for key in value) and value.keys().isdisjoint((TUPLE, PAIRS, FRACTION)):
        return {str(key): _packed(one) for key, one in value.items()}
    return {PAIRS: [[_packed(key), _packed(one)] for key, one in value.items()]}


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {TUPLE}:
        return tuple(_unpacked(one) for one in value[TUPLE])
    if value.keys() == {FRACTION}:
        return Fraction(value[FRACTION])
    if value.keys() == {PAIRS}:
        return {_unpacked(key): _unpacked(one) for key, one in value[PAIRS]}
    return {key: _unpacked(one) for key, one in value.items()}
