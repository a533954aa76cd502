"""What a waiting launcher reports about a run, and for how long it tolerates refusals."""

from __future__ import annotations

import time

from components.errors import CorrectableError
from components.launch.kubernetes.api import Unreachable
from components.progress import remarked

FORGIVEN = 900.0
"""Seconds for which a cluster may refuse requests. A server that is starting knows no users for a moment, and expired
credentials can be renewed meanwhile: they are read again."""


class Refusals:
    """Consecutive refusals by the API server."""

    def __init__(self, forgiven: float = FORGIVEN) -> None:
        self._forgiven, self._since = forgiven, 0.0

    def over(self) -> None:
        self._since = 0.0

    def tolerate(self, error: CorrectableError) -> None:
        """Return if the request is worth repeating; it always is if there was no answer at all.

        Raises:
            InputError: ``error``, because the cluster has refused for too long.
        """
        now = time.monotonic()
        self._since = 0.0 if isinstance(error, Unreachable) else self._since or now
        if self._since and now - self._since > self._forgiven:
            raise error


class StatusReporter:
    """Reports each new message on standard error and to a flow that waits."""

    def __init__(self, name: str, stage: str) -> None:
        self._name, self._stage, self._reported = name, stage, ""

    def report(self, state: str, message: str) -> None:
        if message and message != self._reported:
            self._reported = message
            remarked(self._stage, f"{self._name}: {state}: {message}")
