"""How much memory a process can still get on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil


def available() -> int:
    """Bytes that this process can still get: of the machine, and of every control group that it is in."""
    return max(0, min([int(psutil.virtual_memory().available), *rooms()]))


def rooms(groups: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """What is left of each limit of a control group, versions 1 and 2; file cache that can be dropped is left, too."""
    lines = groups.read_text(encoding="utf-8").splitlines() if groups.exists() else []
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if controllers == "":
            top, limit, used, cache = mount, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            top, cache = mount / "memory", "total_inactive_file"
            limit, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        inner = top / path.lstrip("/")
        for folder in (inner, *inner.parents):
            if folder.is_relative_to(top) and (most := _number(folder / limit)) is not None:
                yield most - (_number(folder / used) or 0) + _number_of(folder / "memory.stat", cache)


def _number(file: Path) -> int | None:
    """None where there is no such file, or no limit in it (``max``)."""
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _number_of(file: Path, name: str) -> int:
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0)
