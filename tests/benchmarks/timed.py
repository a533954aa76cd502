"""Processor time of the calls of a function, added up."""

from __future__ import annotations

import time
from collections.abc import Callable, MutableMapping
from typing import Any


def timed(part: str, function: Callable[..., Any], spent: MutableMapping[str, float]) -> Callable[..., Any]:
    """The function, with the processor time of every call (seconds) added up under ``part``."""

    def counted(*args: Any, **options: Any) -> Any:
        began = time.process_time()
        try:
            return function(*args, **options)
        finally:
            spent[part] += time.process_time() - began

    return counted
