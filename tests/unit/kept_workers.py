"""Worker processes that outlive their sandbox: tests of what stands above the fence start each kind of them once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from components.rewards import sandbox
from components.rewards.pool import Pool


@contextmanager
def kept_workers() -> Iterator[None]:
    """Sandboxes with the same settings take turns with the same worker processes, which end at the end.

    They are the real ones, and a worker that breaks is still replaced. Half a second of processor time is what each of
    them takes to start, which most tests of a stage do not look at.
    """
    pools: dict[tuple[object, ...], Pool] = {}

    def pool(command: Sequence[str], hello: bytes, workers: int, timeout: float) -> Pool:
        key = (tuple(command), hello, workers, timeout, Path.cwd())  # a function from outside may be of that folder
        if key not in pools:
            pools[key] = Pool(command, hello, workers, timeout)
        return pools[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "Pool", pool)
        patch.setattr(sandbox.Sandbox, "close", lambda self: None)
        try:
            yield
        finally:
            for one in pools.values():
                one.close()
