"""A request to stop: it takes effect at once where nothing would be lost, and otherwise at the next such place.

Kubernetes, a launcher and `evenkeel run` end a process with SIGTERM, and kill it some seconds later.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class StopRequested(BaseException):
    """Raised in the main thread where a request to stop takes effect. It is no `Exception`, so no error handling
    catches it."""


class Stopping:
    """Whether this process was requested to stop. Further requests change nothing."""

    def __init__(self) -> None:
        self.requested = False
        self._interrupted, self._listening, self._installed = False, False, False

    def request(self) -> None:
        """Request the stop, from any thread."""
        self.requested = True
        if threading.current_thread() is threading.main_thread():
            if self._listening and not self._interrupted:
                self._interrupted = True
                raise StopRequested
        elif self._installed:  # the main thread may be waiting for something
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    @contextmanager
    def on_signal(self) -> Iterator[None]:
        """SIGTERM requests a stop, which takes effect at once except within `defer_signal`. Outside the main thread
        this does nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGTERM, lambda *_: self.request())
        self._installed = True
        try:
            with self._while(listening=True):
                yield
        finally:
            signal.signal(signal.SIGTERM, before)
            self._installed = self.requested = self._interrupted = False

    @contextmanager
    def defer_signal(self) -> Iterator[None]:
        """Within it, a request waits for the next `stop_point`."""
        with self._while(listening=False):
            yield

    @contextmanager
    def stop_point(self, *, throughout: bool = True) -> Iterator[None]:
        """A place where the run can stop: raises `StopRequested` if a request came before; with ``throughout``, also if
        one comes within it."""
        with self._while(listening=throughout):
            if self.requested:
                raise StopRequested
            yield
            if self.requested and throughout:  # and the exception was swallowed
                raise StopRequested

    @contextmanager
    def _while(self, *, listening: bool) -> Iterator[None]:
        before, self._listening = self._listening, listening
        try:
            yield
        finally:
            self._listening = before


STOPPING = Stopping()
"""Of this process, where it is a stage."""
