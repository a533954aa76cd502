"""A clock that stands still while something else is measured, and that knows what it was spent on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

PHASES = ("rollout", "scoring", "log-probs", "update", "sync")
"""What a step is made of."""
REST, STOPPED = "bookkeeping", "stopped"


class Clock:
    """Seconds since it was made, of the wall or of what ``read`` reads, less those that it was stopped for.

    Every moment belongs to one phase: to the innermost that is under way.
    """

    def __init__(self, read: Callable[[], float] = time.perf_counter) -> None:
        self._read = read
        self._since, self._now = read(), REST
        self.spent = dict.fromkeys((*PHASES, REST, STOPPED), 0.0)

    def seconds(self) -> float:
        self._turn(self._now)
        return sum(self.spent.values()) - self.spent[STOPPED]

    def phases(self) -> dict[str, float]:
        """Seconds of every phase and of the rest."""
        self._turn(self._now)
        return {name: self.spent[name] for name in (*PHASES, REST)}

    def counted(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with the time of every call added to ``phase``; to none while the clock is stopped."""

        def timed(*args: Any, **options: Any) -> Any:
            if self._now == STOPPED:
                return function(*args, **options)
            with self._within(phase):
                return function(*args, **options)

        return timed

    def stopped(self) -> AbstractContextManager[None]:
        return self._within(STOPPED)

    @contextmanager
    def _within(self, phase: str) -> Iterator[None]:
        outer = self._turn(phase)
        try:
            yield
        finally:
            self._turn(outer)

    def _turn(self, phase: str) -> str:
        """From now on it is ``phase``; returns what it was."""
        now, outer = self._read(), self._now
        self.spent[outer] += now - self._since
        self._since, self._now = now, phase
        return outer
