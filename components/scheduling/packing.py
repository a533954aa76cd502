"""Arrays inside a JSON state: base64 of little-endian bytes, exact and of bounded size."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Marks = np.ndarray[Any, np.dtype[np.bool_]]


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
