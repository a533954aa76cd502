"""What whoever waits for a run says of it, and how much he bears."""

from __future__ import annotations

import time

from components.errors import InputError
from components.launch.kubernetes.api import Unreachable
from components.progress import remarked

FORGIVEN = 900.0
"""Seconds that a cluster may refuse to be asked. A server that is being started knows nobody for a moment, and who has
to log in anew can do so meanwhile: the credentials are read again."""


class Refusals:
    """Answers that are a no, one after another."""

    def __init__(self, forgiven: float = FORGIVEN) -> None:
        self._forgiven, self._since = forgiven, 0.0

    def over(self) -> None:
        self._since = 0.0

    def bear(self, error: InputError) -> None:
        """Return where it is worth asking again; no answer at all always is.

        Raises:
            InputError: ``error``, because it has been so for too long.
        """
        now = time.monotonic()
        self._since = 0.0 if isinstance(error, Unreachable) else self._since or now
        if self._since and now - self._since > self._forgiven:
            raise error


class Teller:
    """Tells what is new, on standard error and to a flow that waits."""

    def __init__(self, name: str, stage: str) -> None:
        self._name, self._stage, self._said = name, stage, ""

    def tell(self, state: str, message: str) -> None:
        if message and message != self._said:
            self._said = message
            remarked(self._stage, f"{self._name}: {state}: {message}")
