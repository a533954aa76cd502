"""What happens to the next requests."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["status", "text", "dropped", "lost", "truncated", "slow", "trickle", "cut", "event"]


@dataclass
class Fault:
    """It concerns the next ``times`` requests with this method and this (a regular expression) in path and query.

    - ``status``: answered with ``body``, a Status, and ``headers``; nothing is done
    - ``text``: answered with a page of HTML, and with the status of ``body`` if there is one
    - ``dropped``: the connection ends before anything is done
    - ``lost``: done, and the connection ends instead of an answer
    - ``truncated``: done, and half of the answer arrives
    - ``slow``: done, and answered after ``seconds``
    - ``trickle``: done, and answered one byte in ``seconds``
    - ``cut``: a watch ends in the middle of a line, after ``after`` events
    - ``event``: a watch sends an ERROR event with ``body``, after ``after`` events
    """

    kind: Kind
    method: str = ""
    path: str = ""
    times: int = 1
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    after: int = 0
    meanwhile: Callable[[], object] = field(default=lambda: None)
    """Done before the client learns of the fault."""


class Faults:
    """Those that are going to happen, in their order."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, *faults: Fault) -> None:
        with self._lock:
            self._waiting += faults

    def take(self, method: str, path: str) -> Fault | None:
        with self._lock:
            for fault in self._waiting:
                if fault.times and fault.method in ("", method) and re.search(fault.path, path):
                    fault.times -= 1
                    return fault
        return None

    @property
    def left(self) -> int:
        """How many have not happened yet."""
        with self._lock:
            return sum(fault.times for fault in self._waiting)
