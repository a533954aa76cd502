"""Repeating what failed for a reason that passes."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable


class Attempts:
    """The attempts of one thing so far; the first one is under way.

    Args:
        first: seconds. A pause is drawn between none and a limit that doubles with every attempt, so that those who
            failed together do not come back together.
        longest: that limit's own limit.
        most: attempts in all.
        seconds: within which the last attempt begins.
    """

    def __init__(
        self,
        first: float,
        longest: float,
        *,
        most: float = math.inf,
        seconds: float = math.inf,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._limit, self._longest, self._most, self._sleep = first, longest, most, sleep
        self.end = time.monotonic() + seconds
        self.made = 1

    def again(self, least: float = 0.0) -> bool:
        """Pause before the next attempt, ``least`` seconds and what is drawn; False, at once, where none is left."""
        pause = least + random.uniform(0, min(self._longest, self._limit))
        if self.made >= self._most or time.monotonic() + pause >= self.end:
            return False
        self.made, self._limit = self.made + 1, min(self._longest, 2 * self._limit)
        self._sleep(pause)
        return True
