"""What the fake stages have in common: work that can be killed and resumed, and a checkpoint the registry accepts."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from components.files import write_text
from components.layout import Layout
from components.progress import progress

PAUSE = 0.02
"""Seconds of one unit of work."""


def work(stage: str, layout: Layout, amount: int, note: Callable[[int], str] = lambda done: "") -> None:
    """Do ``amount`` units, remembering how many are done; say where it starts, so that a test can see a resumption."""
    mark = layout.state / f"{stage}.done"
    start = int(mark.read_text(encoding="utf-8")) if mark.exists() else 0
    print(f"{stage} starts at {start}", flush=True)
    with progress(stage, amount) as bar:
        for done in range(start + 1, amount + 1):
            time.sleep(PAUSE)
            write_text(mark, str(done))
            bar.advance(done, note(done))
    mark.unlink(missing_ok=True)


def checkpoint(folder: Path, value: float) -> None:
    """The smallest folder that may be promoted; ``value`` makes it differ."""
    folder.mkdir(parents=True)
    save_file({"weight": np.full(4, value, dtype=np.float32)}, folder / "model.safetensors")
    write_text(folder / "config.json", '{"model_type": "qwen3"}')
    write_text(folder / "tokenizer.json", "{}")
