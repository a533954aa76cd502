"""Several requests at a time, a few of them under way, all of them ended when one fails."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")


def in_order(
    work: Callable[[A], B], items: Iterable[A], workers: int, using: AbstractContextManager[Any] | None = None
) -> Iterator[B]:
    """The results in the order of the items. At most ``workers`` are computed at a time, or wait to be taken. What they
    are ``using`` is closed first when one fails, so that the others need not come to their end."""
    with ThreadPoolExecutor(workers, thread_name_prefix="s3") as pool, using or nullcontext():
        ahead: deque[Future[B]] = deque()
        try:
            for item in items:
                if len(ahead) == workers:
                    yield ahead.popleft().result()
                ahead.append(pool.submit(work, item))
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()
