"""Work in the background of the loop."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Inline(Executor):
    """Does every job at once, in the thread that brings it; an error is raised there."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return finished(fn(*args, **kwargs))


def worker(name: str, *, background: bool) -> Executor:
    """One worker, which does jobs in the order in which they come: a thread of its own, or the caller's.

    The thread starts with its first job. What a job raises there is raised by ``result`` of its future.
    """
    return ThreadPoolExecutor(1, name) if background else Inline()


def finished(value: T) -> Future[T]:
    """The future of a job that is done."""
    done: Future[T] = Future()
    done.set_result(value)
    return done
