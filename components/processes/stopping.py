"""Asked to stop: heard at once where nothing would be lost, and otherwise at the next such place.

Kubernetes, a launcher and `evenkeel run` end a process with SIGTERM, and kill it some seconds later.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Asked(BaseException):
    """Raised in the main thread where a request to stop is heard. Nothing that deals with errors takes it for one."""


class Stopping:
    """Whether somebody has asked this process to stop. Asking more than once neither hurries nor disturbs it."""

    def __init__(self) -> None:
        self.asked = False
        self._interrupted, self._listening, self._installed = False, False, False

    def request(self) -> None:
        """Ask, from any thread."""
        self.asked = True
        if threading.current_thread() is threading.main_thread():
            if self._listening and not self._interrupted:
                self._interrupted = True
                raise Asked
        elif self._installed:  # the main thread may be waiting for something
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    @contextmanager
    def on_signal(self) -> Iterator[None]:
        """SIGTERM asks, and is heard at once but for `unheard`. It keeps its meaning outside of the main thread."""
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
            self._installed = self.asked = self._interrupted = False

    @contextmanager
    def unheard(self) -> Iterator[None]:
        """Inside, a request waits for a place where it is heard."""
        with self._while(listening=False):
            yield

    @contextmanager
    def heard(self, *, throughout: bool = True) -> Iterator[None]:
        """A place where a request that has come before is heard: raises `Asked`. One that comes inside is, too, where
        it is so ``throughout``."""
        with self._while(listening=throughout):
            if self.asked:
                raise Asked
            yield
            if self.asked and throughout:  # and somebody has swallowed it
                raise Asked

    @contextmanager
    def _while(self, *, listening: bool) -> Iterator[None]:
        before, self._listening = self._listening, listening
        try:
            yield
        finally:
            self._listening = before


STOPPING = Stopping()
"""Of this process, where it is a stage."""
