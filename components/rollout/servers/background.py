"""An event loop for callers that wait, and threads for calls that it must not wait in."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Sequence
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


def in_a_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    """The result of a call that blocks, in a thread that ends when the call does and needs no joining.

    `asyncio.to_thread` is not for calls that may be given up: they keep a place of a pool that others need, and the
    process does not end before they do.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            set_(value)

    def work() -> None:
        try:
            outcome: tuple[Callable[[Any], None], Any] = future.set_result, call()
        except BaseException as error:
            outcome = future.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits any more
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=work, name="in-a-thread", daemon=True).start()
    return future


async def gathered(futures: Sequence[asyncio.Future[Any]]) -> list[Any]:
    """The results of all, or the first error.

    As `asyncio.gather`, which loses the cancellation of its caller where one of ``futures`` fails in the same turn of
    the loop (Python 3.11): the caller handles the error and goes on, and whoever cancelled it waits for ever.
    """
    try:
        return await asyncio.gather(*futures)
    except Exception as error:
        caller = asyncio.current_task()
        if caller is not None and caller.cancelling():
            raise asyncio.CancelledError from error
        raise
