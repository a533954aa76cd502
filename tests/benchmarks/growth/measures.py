"""Processor time, the shortest of several calls, and peaks of memory.

Processor time does not count what a neighbour takes, so it is what a curve is made of wherever nothing waits for a
disk. It counts children of this process that have ended.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"


def busy() -> float:
    """Seconds of the processor that this process and its ended children took."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def cpu_s(call: Callable[[], object]) -> float:
    """Seconds of the processor of one call."""
    began = busy()
    call()
    return busy() - began


@dataclass(frozen=True)
class Clocked:
    """Seconds of one call: on the clock, and of the processor in this process, outside the kernel and in it."""

    wall: float
    user: float
    kernel: float


def clocked(call: Callable[[], object]) -> Clocked:
    before = resource.getrusage(resource.RUSAGE_SELF)
    wall = wall_s(call)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return Clocked(wall, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime)


def medians(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Field by field."""
    return {name: median(row[name] for row in rows) for name in rows[0]}


def wall_s(call: Callable[[], object]) -> float:
    """Seconds on the clock of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def least_ms(call: Callable[[], object], repeats: int = 7) -> float:
    """Milliseconds of the processor, least of several calls."""
    return 1e3 * min(cpu_s(call) for _ in range(repeats))


@dataclass
class Growth:
    """By how many MB the memory of this process grew at the most."""

    mb: float = 0.0


@contextmanager
def peak() -> Iterator[Growth]:
    """Of what the block does, beyond what was there before it. Linux only."""
    gc.collect()
    CLEAR.write_text(RESET_PEAK)
    before, growth = _resident("VmRSS"), Growth()
    yield growth
    growth.mb = max(0.0, _resident("VmHWM") - before)


def _resident(name: str) -> float:
    """MB."""
    line = next(line for line in STATUS.read_text("utf-8").splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024 / 1e6
