"""Checkpoints of any size that the registry takes. Every byte of them is really written, hashed and copied."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.benchmarks.section import Row, skipped

MB = 10**6
SHARD = 1000
"""MB."""
COPIES = 2.5
"""Times its size that measuring a checkpoint takes on disk at the most, and some room for others."""


def made(size: int, folder: Path) -> Path:
    """A folder with so many MB of weights, random ones over and over: nothing on the way compresses them."""
    path = folder / f"checkpoint-{size}"
    path.mkdir()
    (path / "config.json").write_text('{"model_type": "qwen2"}')
    (path / "tokenizer.json").write_text("{}")
    tile = os.urandom(MB)
    for number, begin in enumerate(range(0, size, SHARD)):
        count = min(SHARD, size - begin)
        weight = {"dtype": "BF16", "shape": [count * MB // 2], "data_offsets": [0, count * MB]}
        header = {f"weight-{number}": weight}
        text = json.dumps(header).encode()
        with (path / f"model-{number}.safetensors").open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for _ in range(count):
                file.write(tile)
            file.flush()
            os.fsync(file.fileno())  # else whoever flushes next waits for it too
    return path


def too_large(size: int, folder: Path) -> Row | None:
    """Why there is no room for a checkpoint, where there is none."""
    status = os.statvfs(folder)
    free, needed = status.f_bavail * status.f_frsize / MB, (1 + COPIES) * size
    return None if free > needed else skipped(f"{free / 1e3:.0f} GB free on disk, {needed / 1e3:.0f} GB are needed")
