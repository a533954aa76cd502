"""When a waiting launcher looks again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from components.attempts import Attempts
from components.errors import CorrectableError
from components.launch.kubernetes.api import Cluster

MOST = 10.0
"""Seconds after which it is worth looking in any case: pods change without their JobSet changing."""
FIRST_PAUSE, LEAST = 0.5, 0.2
"""Seconds between a watch that failed and the next one, to begin with; and between two looks."""


def changes(
    cluster: Cluster, name: str, most: float = MOST, sleep: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """Yields at once, then whenever the JobSet has changed, and ``most`` seconds after that at the latest.

    A watch is only a hint: the state is always read from the cluster (`observed.gather`). It begins with the JobSet's
    present state every time, so there is no version that could be too old to go on from, and what happened between a
    look and the watch is seen.

    It never ends by itself: not when the JobSet is gone, when the server restarts, or when watching is not allowed.
    """
    yield
    seen: str | None = None
    """The version that was there at the latest look, as far as is known."""
    attempts = Attempts(FIRST_PAUSE, most, sleep=sleep)
    while True:
        began = time.monotonic()
        try:
            for event in cluster.watch(name, most):
                version = _version(event)
                if version != seen and event.get("type") != "BOOKMARK":
                    seen, attempts = version, Attempts(FIRST_PAUSE, most, sleep=sleep)
                    sleep(LEAST)  # a change seldom comes alone
                    yield
            ended = time.monotonic() - began
        except CorrectableError:  # `gather` raises the error
            ended = 0.0
        if ended < most / 2:  # it broke off, or the server is in a hurry
            attempts.again()
        else:
            attempts = Attempts(FIRST_PAUSE, most, sleep=sleep)
        yield


def _version(event: dict[str, Any]) -> str:
    """The version of an object: its present state, sent again, is no change."""
    metadata = (event.get("object") or {}).get("metadata") or {}
    return f"{metadata.get('uid')} {metadata.get('resourceVersion')} {event.get('type') == 'DELETED'}"
