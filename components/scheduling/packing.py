"""Arrays inside a JSON state: base64 of little-endian bytes, exact and of bounded size."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Marks = np.ndarray[Any, np.dtype[np.bool_]]


def pack(values: Array, dtype: str) -> str:
    """``values [N]`` as numbers of ``dtype`` (which must hold them exactly)."""
    return base64.b64encode(values.astype(np.dtype(dtype).newbyteorder("<")).tobytes()).decode()


def unpack(text: str, dtype: str) -> Array:
    """What `pack` was given.

    Raises:
        ValueError: not base64, or half a number at its end.
    """
    kind, packed = np.dtype(dtype).newbyteorder("<"), _bytes(text)
    if len(packed) % kind.itemsize:
        raise ValueError(f"state does not fit: {len(packed)} bytes are no numbers of {kind.itemsize}")
    return np.frombuffer(packed, kind).astype(dtype)


def pack_marks(marks: Marks) -> str:
    """One bit each."""
    return base64.b64encode(np.packbits(marks).tobytes()).decode()


def unpack_marks(text: str, count: int) -> Marks:
    """``count`` marks.

    Raises:
        ValueError: not base64, or of another number of marks.
    """
    packed = np.frombuffer(_bytes(text), np.uint8)
    bits = np.unpackbits(packed).astype(bool)
    if len(packed) != -(-count // 8) or bits[count:].any():
        raise ValueError(f"state does not fit: not the marks of {count} prompts")
    return bits[:count]


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"state does not fit: not base64 ({error})") from error
