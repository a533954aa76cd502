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

SIGNALS = {
    "accuracy": 0.5,
    "agreement": 0.0,
    "all_right_share": 0.1,
    "all_wrong_share": 0.1,
    "attempts": 1.0,
    "dev_pass_at_1": 0.5,
    "dev_pass_at_k": 0.7,
    "dev_pass_at_k_se": 0.02,
    "dev_pass_at_1_se": 0.02,
    "distinct_prompts": 32.0,
    "effective_prompts": 20.0,
    "entropy": 1.0,
    "ess": 1.0,
    "fall_evidence": -2.0,
    "grad_norm": 0.3,
    "groups_sampled": 32.0,
    "groups_trained": 32.0,
    "kl_old": 0.0,
    "kl_ref": 0.01,
    "length_gap": 0.0,
    "length_mean": 20.0,
    "mismatch_explained": 0.001,
    "mismatch_k3": 0.0,
    "mismatch_max": 0.0,
    "mismatch_mean": 0.0,
    "nonfinite": 0.0,
    "nonfinite_tokens": 0.0,
    "nonfinite_weights": 0.0,
    "repetition_share": 0.0,
    "reward": 0.5,
    "reward_std": 0.3,
    "staleness": 0.0,
    "top_completion_share": 0.05,
    "top_prompt_share": 0.05,
    "train_dev_gap": 0.0,
    "truncated_share": 0.0,
    "unique_share": 0.9,
    "unscorable_share": 0.0,
    "updates_skipped": 0.0,
    "zero_variance_share": 0.2,
}
"""What a step in which nothing is wrong is like."""


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
