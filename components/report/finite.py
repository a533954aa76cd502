"""Figures that are numbers. JSON as Python reads it may hold NaN and infinity, of which no page can say anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from components.errors import InputError

LARGEST = sys.float_info.max


def check_finite(part: Any, *, where: Path | str, how: str) -> None:
    """Refuse a part with a figure that is none.

    Raises:
        InputError: a number in it is NaN, or too large to be written down.
    """
    if found := next(_not_finite(part, ""), None):
        raise InputError(f"{found.lstrip('.')} is not a finite number", where=where, how=how)


def _not_finite(value: Any, at: str) -> Iterator[str]:
    """Where they are, keys and places with dots between them."""
    inside: Any = ()
    if isinstance(value, int | float):
        if not -LARGEST <= value <= LARGEST:
            yield at
    elif isinstance(value, Mapping):
        inside = value.items()
    elif isinstance(value, list | tuple):
        inside = enumerate(value)
    elif is_dataclass(value):
        inside = ((field.name, getattr(value, field.name)) for field in fields(value))
    for name, one in inside:
        yield from _not_finite(one, f"{at}.{name}")
