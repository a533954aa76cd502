"""An event loop for callers that wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """An event loop in a thread of its own, for callers that wait."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._awaited: set[Future[Any]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rollout-servers", daemon=True)
        self._thread.start()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine; an interrupt ends it, and so does `cancel`, with a `CancelledError`."""
        if self._loop.is_closed():
            call.close()
            raise RuntimeError("the engine is closed")
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        self._awaited.add(future)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
        finally:
            self._awaited.discard(future)

    def cancel(self) -> None:
        """End all that other threads wait for."""
        for future in self._awaited.copy():
            future.cancel()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
