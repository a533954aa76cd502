"""What is measured: policies in the shapes of Llama with random weights, and the ways in which they are trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.config import Settings
from components.planning.passes import Load


@dataclass(frozen=True)
class Size:
    """A policy's shape, and the batch that it is trained on: ``rows`` of ``width`` tokens, a quarter of them the
    prompt, ``group`` rows a prompt, ``pass_rows`` in a pass."""

    name: str
    vocabulary: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    rows: int = 16
    group: int = 4
    width: int = 128
    pass_rows: int = 4

    @property
    def config(self) -> dict[str, Any]:
        """Arguments of `transformers.LlamaConfig`."""
        return {
            "vocab_size": self.vocabulary,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "intermediate_size": self.intermediate,
            "max_position_embeddings": 2048,
            "tie_word_embeddings": True,
        }

    @property
    def prompt(self) -> int:
        return self.width // 4


SIZES = {
    size.name: size
    for size in (
        Size("25M", 16_384, 384, 12, 6, 2, 1024),
        Size("135M", 49_152, 576, 30, 9, 3, 1536, rows=8, pass_rows=2),
        Size("400M", 32_768, 1024, 32, 16, 4, 2816, rows=4, group=2, pass_rows=1),
    )
}
TOY = Size("toy", 512, 64, 2, 4, 2, 128, rows=8, width=32)
KINDS: dict[str, dict[str, Any]] = {
    "torch": {"kind": "torch"},
    "fsdp2": {"kind": "fsdp2", "ranks": {"processes": 2}},
    "zero 2": {"kind": "deepspeed", "ranks": {"processes": 2}},
}
ADAPTER = {"rank": 16, "alpha": 32}
"""Of the ways that train an adapter."""


def load_of(size: Size, kind: str) -> Load:
    """What is computed at a time: passes of the lean pass have a group's prompt once, and its padding is not computed.
    A group that is more than a pass is cut between its rows."""
    new = size.width - size.prompt
    if kind == "torch":
        rows = next(
            rows for rows in range(size.group, 0, -1) if size.prompt + rows * new <= size.pass_rows * size.width
        )
        return Load(size.prompt + rows * new, rows * new, size.rows, size.group, size.prompt, new)
    return Load(size.pass_rows * size.width, size.pass_rows * new, size.rows, size.group, size.prompt, new)


def settings_of(size: Size, kind: str, lora: bool, folder: Path) -> Settings:
    """The settings that both the measurement and the plan are made from. Checkpoints of ranks are written at once."""
    ranks = KINDS[kind].get("ranks")
    return Settings.model_validate(
        {
            "policy": {
                "model": {"kind": "checkpoint", "path": str(folder)},
                "chat": False,
                "lora": ADAPTER if lora else None,
            },
            "rollout": {"group_size": size.group, "max_new_tokens": size.width - size.prompt},
            "learner": {"micro_batch_tokens": size.pass_rows * size.width, **KINDS[kind]},
            "train": {"prompts_per_step": size.rows // size.group, "checkpoints": {"asynchronous": kind == "torch"}},
            "admission": {"min_distinct": 1},
            "launch": {"kind": "processes" if ranks else "inline"},
        }
    )
