"""Sends a run to one sink: each step once and in order, whatever fails.

A cursor on disk says how far it is. It is written before a batch is sent and after. A process that is killed in between
sends the same batch again, with the same time, so that a tracker that knows a point by step and time keeps it once.

Steps that a resumed run makes again are not sent again: they are the same to the byte. Where they are not, as with
servers that sample otherwise each time, what was sent first stays, and that is said.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from components.errors import InputError
from components.files import read_json, sha256_file, write_json
from components.sinks.base import Batch, Sink
from components.sinks.feed import Feed

MOST = 256
"""Steps of a batch, of which one at a time is in memory."""
PAUSES = (5.0, 30.0, 60.0)
"""Seconds without a try after the first, second, and every later failure in a row."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Cursor:
    """Numbers of the next step and note, where in the log that step begins, and the digest of the step before.

    ``until`` and ``at`` are of a batch that is being sent: the step after it, and its time. ``finished`` is the digest
    of the report that was sent.
    """

    steps: int = 0
    notes: int = 0
    offset: int = 0
    last: str = ""
    until: int | None = None
    at: float = 0.0
    finished: str = ""


class Delivery:
    """Used by one thread at a time.

    Args:
        start: opens the sink; called again after a failure.
        feed: made for a place in the log.
        memory: where the cursor is kept; None: nowhere, and a new process begins with the first step.
        say: called with a sentence when sending begins to fail, and when it works again.
    """

    def __init__(
        self, name: str, start: Callable[[], Sink], feed: Callable[[int, str], Feed], memory: Path | None, say: Say
    ) -> None:
        self.name, self._start, self._memory, self._say = name, start, memory, say
        self.cursor = Cursor(**read_json(memory)) if memory is not None and memory.exists() else Cursor()
        self._make_feed = feed
        self._feed = feed(self.cursor.offset, self.cursor.last)
        self._sink: Sink | None = None
        self._batch: Batch | None = None
        self._failures, self._silent_until, self._remade = 0, 0.0, False
        self.busy_since: float | None = None
        """When the sink was called, by the monotonic clock; None where it has returned."""

    @property
    def failing(self) -> bool:
        """Whether the last try failed."""
        return self._failures > 0

    def open(self) -> Sink:
        """The sink, opened now if it is not. Raises what it raises."""
        if self._sink is None:
            self._sink = self._start()
        return self._sink

    def attempt(self, *, last: bool = False) -> bool:
        """Send a batch, if there is one; never raises.

        Args:
            last: the run is over: do not pause after a failure, and send the results when all steps are sent.

        Returns:
            Whether something was sent, so that there may be more.
        """
        if not last and time.monotonic() < self._silent_until:
            return False
        self.busy_since = time.monotonic()
        try:
            sent = self._send() or (last and self._finish())
        except (Exception, SystemExit) as error:  # of a library that we do not know: whatever it is, the run goes on
            self._failed(error)
            return False
        finally:
            self.busy_since = None
        if sent and self._failures:
            self._say(f"{self.name} works again; everything is sent that was missing")
            self._failures = 0
        return sent

    def close(self, *, quietly: bool = False) -> None:
        """Close the sink; never raises."""
        sink, self._sink = self._sink, None
        if sink is not None:
            try:
                sink.close()
            except (Exception, SystemExit) as error:
                if not quietly:
                    self._say(f"{self.name} could not be closed: {_words(error)}")

    def _send(self) -> bool:
        if self._batch is None:
            self._batch = self._next()
        if self._batch is None:
            return False
        self.open().send(self._batch)
        done = self.cursor.steps + len(self._batch.steps)
        notes = self._batch.notes[-1].number + 1 if self._batch.notes else self.cursor.notes
        under_way = self.cursor.until if (self.cursor.until or 0) > done else None
        place = self._feed.rows
        self._keep(
            replace(self.cursor, steps=done, notes=notes, until=under_way, offset=place.offset, last=place.digest)
        )
        self._batch = None
        return True

    def _next(self) -> Batch | None:
        cursor = self.cursor
        again = cursor.until is not None
        most = (cursor.until or 0) - cursor.steps
        steps = self._feed.steps(cursor.steps, most if most > 0 else MOST)
        if self._feed.rows.remade and not self._remade:
            self._remade = True
            self._say(
                f"{self.name}: the run made its last steps again with other figures; of steps before {cursor.steps} it "
                "shows the first ones"
            )
        notes = self._feed.notes(cursor.notes, cursor.steps + len(steps))
        if not steps and not notes:
            return None
        if not again:
            self._keep(replace(cursor, until=cursor.steps + len(steps), at=round(time.time(), 3)))
        return Batch(self.cursor.at, steps, notes, again)

    def _finish(self) -> bool:
        results = self._feed.results()
        if results is None or results.report is None:
            return False
        digest = sha256_file(results.report)
        if digest == self.cursor.finished:
            return False
        self.open().finish(results, results.report.stat().st_mtime)
        self._keep(replace(self.cursor, finished=digest))
        return True

    def _keep(self, cursor: Cursor) -> None:
        self.cursor = cursor
        if self._memory is not None:
            write_json(self._memory, asdict(cursor))

    def _failed(self, error: BaseException) -> None:
        if not self._failures:
            self._say(f"nothing can be sent to {self.name}, which is tried again: {_words(error)}")
        self._silent_until = time.monotonic() + PAUSES[min(self._failures, len(PAUSES) - 1)]
        self._failures += 1
        self.close(quietly=True)
        if self._memory is None:  # what it had is gone with it
            self.cursor, self._batch, self._feed = Cursor(), None, self._make_feed(0, "")


def _words(error: BaseException) -> str:
    if isinstance(error, InputError):
        return str(error)
    return f"{type(error).__name__}: {error}".splitlines()[0]
