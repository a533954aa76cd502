"""What this process is doing now: the seam between code that takes long and whatever shows how far it is.

Code that takes long opens a piece of work and counts in it (`working`). It knows of no file, terminal or clock. What
shows progress looks at `present` from a thread of its own, as often as it likes (`components.progress`); where nothing
looks, a count costs one addition.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

KNOWN = 1.0
"""Seconds over which a rate is taken at least."""


@dataclass(eq=False, slots=True)
class Work:
    """One piece of work: ``done`` of ``total`` units; ``total`` 0 where it is not known.

    ``at_most``: it may end earlier than after ``total`` units, as a completion may that meets its end token.
    """

    what: str
    total: int = 0
    unit: str = ""
    at_most: bool = False
    done: int = 0
    began: float = field(default_factory=lambda: time.monotonic())
    first: tuple[float, int] | None = field(default=None, init=False)
    """When a look first found some of it done, and how much."""
    thread: int = field(default_factory=threading.get_ident)

    def add(self, count: int = 1) -> None:
        """``count`` more units are done."""
        self.done += count

    def spare(self, count: int) -> None:
        """``count`` units of the total will not be needed."""
        self.total -= count

    def rate(self, now: float) -> float | None:
        """Units a second; None where none is known yet.

        The mean since something was first seen to be done, because what comes before that may be the start of worker
        processes or the reading of prompts; until more is done than that the mean since the beginning.
        """
        if not self.done:
            return None
        self.first = self.first or (now, self.done)
        since, before = self.first if self.done > self.first[1] else (self.began, 0)
        return (self.done - before) / (now - since) if now - since >= KNOWN else None


_open: list[Work] = []
"""All work of this process, in order of its beginning. Adding and removing is atomic in CPython."""


@contextmanager
def working(what: str, total: int = 0, unit: str = "", *, at_most: bool = False) -> Iterator[Work]:
    """The block is a piece of work, such as ``working("sampling", 512, "tokens")``. Pieces may be nested."""
    work = Work(what, total, unit, at_most)
    _open.append(work)
    try:
        yield work
    finally:
        _open.remove(work)


def present() -> list[Work]:
    """The innermost work of every thread that has any."""
    return list({work.thread: work for work in tuple(_open)}.values())


def described(now: float | None = None) -> str:
    """The present work as one line; empty where there is none."""
    return "; ".join(describe(work, time.monotonic() if now is None else now) for work in present())


def describe(work: Work, now: float) -> str:
    """How far it is, e.g. ``sampling 14,300 of at most 51,200 tokens, 1,240/s, 0:31 left``.

    Rate and time left are shown once there is a rate; until then it is the time that the work has taken.
    """
    done, total, rate = work.done, work.total, work.rate(now)
    parts = [work.what]
    if total:
        parts[0] += f" {done:,} of {'at most ' if work.at_most else ''}{total:,} {work.unit}".rstrip()
    elif work.unit:
        parts[0] += f" {done:,} {work.unit}"
    if rate:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
        if total:
            parts.append(f"{clock(max(0, total - done) / rate)} left")
    else:
        parts.append(clock(max(0.0, now - work.began)))
    return ", ".join(parts)


def clock(seconds: float) -> str:
    """Minutes and seconds, e.g. ``1:07``."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
