"""What a field of a saved state may hold. Each check gives the value, or raises ValueError with the field's name.

Arrays in it are base64 of little-endian bytes, exact and of bounded size.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

SUM = 1e-6
"""How far shares may be from 1 in all: rounding, and no more."""
Array = np.ndarray[Any, np.dtype[Any]]
Marks = np.ndarray[Any, np.dtype[np.bool_]]


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


def pack(values: Array, dtype: str) -> str:
    """``values [N]`` as numbers of ``dtype`` (which must hold them exactly)."""
    return base64.b64encode(values.astype(np.dtype(dtype).newbyteorder("<")).tobytes()).decode()


def unpack(state: Mapping[str, Any], field: str, dtype: str) -> Array:
    """What `pack` was given.

    Raises:
        ValueError: not base64, or half a number at its end.
    """
    kind, packed = np.dtype(dtype).newbyteorder("<"), _bytes(state, field)
    if len(packed) % kind.itemsize:
        raise ValueError(f"state does not fit: {field} is {len(packed)} bytes, no numbers of {kind.itemsize}")
    return np.frombuffer(packed, kind).astype(dtype)


def pack_all(kinds: Mapping[str, str], arrays: Iterable[Array]) -> dict[str, str]:
    """Several fields: name -> what kind of numbers its array is packed as."""
    return {name: pack(values, kind) for (name, kind), values in zip(kinds.items(), arrays, strict=True)}


def unpack_places(state: Mapping[str, Any], kinds: Mapping[str, str], count: int) -> list[Array]:
    """What `pack_all` was given: ascending places among ``count``, and arrays with a value for each of them.

    Raises:
        ValueError: not base64, or places that cannot be, or other numbers of values.
    """
    places, *values = (unpack(state, name, kind) for name, kind in kinds.items())
    fits = (np.diff(places) > 0).all() and ((places >= 0) & (places < count)).all()
    if not fits or any(len(one) != len(places) for one in values):
        raise impossible(kinds)
    return [places, *values]


def impossible(fields: Iterable[str]) -> ValueError:
    return ValueError(f"state does not fit: {', '.join(fields)} are measurements that cannot be")


def pack_marks(marks: Marks) -> str:
    """One bit each."""
    return base64.b64encode(np.packbits(marks).tobytes()).decode()


def unpack_marks(state: Mapping[str, Any], field: str, count: int) -> Marks:
    """``count`` marks.

    Raises:
        ValueError: not base64, or of another number of marks.
    """
    packed = np.frombuffer(_bytes(state, field), np.uint8)
    bits = np.unpackbits(packed).astype(bool)
    if len(packed) != -(-count // 8) or bits[count:].any():
        raise ValueError(f"state does not fit: {field} is not the marks of {count} prompts")
    return bits[:count]


def _bytes(state: Mapping[str, Any], field: str) -> bytes:
    text = state[field]
    if not isinstance(text, str):
        raise ValueError(f"state does not fit: {field} is {repr(text)[:80]}, not base64")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"state does not fit: {field} is not base64 ({error})") from error
