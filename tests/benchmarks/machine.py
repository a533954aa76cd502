"""What a figure was measured on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

PACKAGES = "torch", "transformers", "trl", "deepspeed", "prefect", "dvc", "great-expectations", "scikit-learn", "numpy"


def machine() -> dict[str, str | int]:
    """Processor, cores that this process may use, memory in GiB, GPU."""
    return {
        "processor": _processor(),
        "cores": len(psutil.Process().cpu_affinity() or []) or psutil.cpu_count() or 1,
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "gpu": _gpu(),
        "system": platform.system(),
    }


def versions() -> dict[str, str]:
    """Python's and those of the packages that figures depend on; "-" for what is not installed."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def _version(name: str) -> str:
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return "-"


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].replace("Processor", "").split())
    return platform.processor() or platform.machine()


def _gpu() -> str:
    """Without importing torch, which takes seconds and much memory in the process of every cell."""
    names = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    models = [line for path in names for line in path.read_text("utf-8").splitlines() if line.startswith("Model")]
    return ", ".join(line.partition(":")[2].strip() for line in models) or "none"
