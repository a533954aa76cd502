"""Section `gpu`: updates, sampling and the hand-over of weights on one GPU; nothing is measured where there is none.

A model with random weights in the shape of Qwen2.5 0.5B, 64 rows, bf16 products.

- `updates` — our learner, the same in plain PyTorch, and TRL: rows of 1,024 tokens (256 of them the prompt), 8 rows a
  pass, fp32 weights and moments; medians of 5 updates after 2, all of the same groups
- `flops` — what MFU counts
- `sampling` — 256 new tokens behind 256: the embedded engine, `transformers.generate` and its continuous batching
- `hand_over` — weights from one process to another

All by the clock. ``--smoke`` runs the same code on a CPU with a toy.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import ClassVar

from tests.benchmarks.gpu.flops import SHAPES, TOY, Shape
from tests.benchmarks.section import Row, Rows, Scale, Section
from tests.benchmarks.spread import spread, table

UPDATES = (
    "torch",
    "torch, 2^27 logits at once",
    "plain PyTorch",
    "TRL",
    "torch, checkpointing",
    "TRL, checkpointing",
    "torch, LoRA",
    "fsdp2",
    "ZeRO 3",
)
"""Those that are compared stand next to each other."""
SMOKE = ("torch", "plain PyTorch", "TRL", "torch, LoRA", "fsdp2")
SAMPLING = "sampling, "
SAMPLERS = ("engine", "transformers generate", "transformers continuous batching")
HAND_OVER = "hand-over"
NO_GPU = "no GPU"
TOLERANCE = 0.05
"""Of the gradient's norm, relative to the first way's: bf16 has three digits, and each side rounds elsewhere."""


class Gpu(Section):
    title: ClassVar[str] = "One GPU"

    def cells(self, scale: Scale) -> Sequence[str]:
        updates = UPDATES if scale == "full" else SMOKE
        ways = [*updates, *(f"{SAMPLING}{sampler}" for sampler in SAMPLERS), HAND_OVER]
        return [f"{shape.name}: {way}" for shape in _shapes(scale) for way in ways]

    def lacking(self) -> str:
        return "" if has_devices() else NO_GPU

    def absent(self) -> dict[str, str]:
        return dict.fromkeys(("updates", "sampling", "hand_over", "source"), f"not measured: {NO_GPU}")

    def measure(self, cell: str, scale: Scale, folder: Path) -> Row:
        name, _, way = cell.partition(": ")
        shape = next(shape for shape in _shapes(scale) if shape.name == name)
        # The first of them alone: transformers would spread one process over all that it sees.
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
        import torch

        from tests.benchmarks.gpu import hand_over, sampling, updates

        device = torch.device("cuda", 0) if scale == "full" else torch.device("cpu")
        if way == HAND_OVER:
            return hand_over.measure(shape, device)
        if way.startswith(SAMPLING):
            return sampling.measure(shape, way.removeprefix(SAMPLING), device)
        return updates.measure(shape, way, device)

    def figures(self, rows: Rows) -> dict[str, str]:
        rows = {cell: rows[cell] for scale in ("full", "smoke") for cell in self.cells(scale) if cell in rows}
        ways = {cell: cell.partition(": ")[2] for cell in rows}
        made = {cell: row for cell, row in rows.items() if ways[cell] in UPDATES}
        found = {
            "updates": updates_table(made),
            "sampling": sampling_table({cell: row for cell, row in rows.items() if ways[cell].startswith(SAMPLING)}),
            "hand_over": hand_over_table({cell: row for cell, row in rows.items() if ways[cell] == HAND_OVER}),
        }
        for name in dict.fromkeys(cell.partition(": ")[0] for cell in made):
            times = ratio(made, name, "torch", "TRL")
            if times is not None:
                found[f"ratio_{name}"] = f"{times:.2f}"
            if (share := mfu(made.get(f"{name}: torch", {}))) is not None:
                found[f"mfu_{name}"] = f"{100 * share:.0f} %"
        return found


def _shapes(scale: Scale) -> Sequence[Shape]:
    return SHAPES if scale == "full" else (TOY,)


def has_devices() -> bool:
    """Whether the kernel shows a GPU. Asking torch takes seconds."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()


def mfu(row: Row) -> float | None:
    """Share of the device's peak that the model's own arithmetic takes; None where either is not known."""
    if not row.get("peak_flops_per_s") or not row.get("seconds"):
        return None
    return float(row["model_flops"] / median(row["seconds"]) / row["peak_flops_per_s"])


def ratio(rows: Rows, name: str, ours: str, theirs: str) -> float | None:
    """How many times as fast, of medians; None where either was not measured, or the work was not the same."""
    a, b = rows.get(f"{name}: {ours}", {}), rows.get(f"{name}: {theirs}", {})
    if not a.get("seconds") or not b.get("seconds") or not same(a, b):
        return None
    return median(b["seconds"]) / median(a["seconds"])


def same(a: Row, b: Row) -> bool:
    """Whether the gradient of the first update was the same but for rounding."""
    return abs(a["grad_norm"] - b["grad_norm"]) <= TOLERANCE * max(abs(a["grad_norm"]), abs(b["grad_norm"]))


def updates_table(rows: Rows) -> str:
    """A line for every way of every model, and the reason for one that could not be measured."""
    heads = ("device", "model", "learner", "ms an update", "tokens/s", "TFLOP/s", "MFU", "peak GiB")
    head = [*heads, "norm of the gradient"]
    lines = []
    for cell, row in rows.items():
        name, _, way = cell.partition(": ")
        if "skipped" in row:
            lines.append(["", name, way, row["skipped"], *[""] * (len(head) - 4)])
            continue
        seconds, share = median(row["seconds"]), mfu(row)
        first = next(other for key, other in rows.items() if key.startswith(f"{name}: ") and "skipped" not in other)
        other = "" if same(row, first) else ", other weights" if "LoRA" in way else ", not the same work"
        lines.append(
            [
                row["device"],
                f"{name} ({row['parameters'] / 1e9:.2f} G parameters)",
                way,
                spread([1e3 * value for value in row["seconds"]], 0),
                f"{row['tokens'] / seconds:,.0f}",
                f"{row['model_flops'] / seconds / 1e12:.1f}",
                "-" if share is None else f"{100 * share:.1f} %",
                "-" if row["peak_gib"] is None else f"{row['peak_gib']:.1f}",
                f"{row['grad_norm']:.4f}{other}",
            ]
        )
    return table(head, lines)


def sampling_table(rows: Rows) -> str:
    lines = []
    for cell, row in rows.items():
        name, _, way = cell.partition(f": {SAMPLING}")
        if "skipped" in row:
            lines.append(["", name, way, row["skipped"], ""])
            continue
        rates = [tokens / seconds for tokens, seconds in zip(row["tokens"], row["seconds"], strict=True)]
        peak = "-" if row["peak_gib"] is None else f"{row['peak_gib']:.1f}"
        lines.append([row["device"], name, way, spread(rates, 0), peak])
    return table(["device", "model", "sampler", "tokens/s", "peak GiB"], lines)


def hand_over_table(rows: Rows) -> str:
    lines = []
    for cell, row in rows.items():
        if "skipped" in row:
            lines.append(["", cell.partition(": ")[0], row["skipped"], "", "", ""])
            continue
        speed = row["bytes"] / median(row["seconds"]) / 1e9
        took = [f"{1e3 * row['first_s']:,.0f}", spread([1e3 * value for value in row["seconds"]], 1), f"{speed:.1f}"]
        lines.append([row["device"], cell.partition(": ")[0], f"{row['bytes'] / 1e9:.2f}", *took])
    return table(["device", "model", "GB in bf16", "first, ms", "later, ms", "GB/s"], lines)
