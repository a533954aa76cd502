"""Peak memory of this process above what it has loaded."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_above(work: Callable[[], object]) -> dict[str, float]:
    """MB that ``work`` takes at its highest above what is resident before it, and that; Linux alone says both.

    Raises:
        OSError: The highest mark cannot be set back; a figure without that would be that of the loading.
    """
    gc.collect()
    RESET.write_text("5", "utf-8")  # the highest mark is what is resident now
    loaded = megabytes("VmRSS")
    work()
    return {"loaded_mb": round(loaded, 1), "peak_mb": round(megabytes("VmHWM") - loaded, 1)}


def megabytes(name: str) -> float:
    line = next(line for line in STATUS.read_text("utf-8").splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024 / 1e6
