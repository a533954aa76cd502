"""Imports without Python's garbage collector.

What a library makes when it is imported stays. To look through it again and again takes a quarter of the time of a
stage's imports, and once more at the end of the process a second.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Inside the block nothing is collected. What there is afterwards is never looked at again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
