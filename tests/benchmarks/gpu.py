"""Section `gpu`: what an update costs on a GPU, ours beside TRL's; skipped where there is none.

Models with random weights in the shapes of Qwen2.5 0.5B and 1.5B, 64 rows of 1,024 tokens (256 of them the prompt), 8
rows a pass, one GPU, bf16 passes, fp32 weights and moments. Medians by the clock of 5 updates after 2, all of the same
groups. What MFU counts is in `micro.flops`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import ClassVar

from tests.benchmarks.micro.flops import SHAPES, TOY, Shape
from tests.benchmarks.section import Row, Rows, Scale, Section, skipped
from tests.benchmarks.spread import spread, table

WAYS = (
    "torch",
    "torch, logits whole",
    "TRL",
    "torch, checkpointing",
    "TRL, checkpointing",
    "fsdp2",
    "ZeRO 2",
    "ZeRO 3",
)
"""Those that are compared stand next to each other."""
SMOKE = ("torch", "TRL")
NO_GPU = "there is no GPU on this machine"
TOLERANCE = 0.05
"""Of the gradient's norm, relative to the first way's: bf16 has three digits, and each side rounds elsewhere."""


class Gpu(Section):
    title: ClassVar[str] = "Updates on a GPU beside TRL"

    def cells(self, scale: Scale) -> Sequence[str]:
        ways = WAYS if scale == "full" else SMOKE
        return [f"{shape.name}: {way}" for shape in _shapes(scale) for way in ways]

    def measure(self, cell: str, scale: Scale, folder: Path) -> Row:
        name, _, way = cell.partition(": ")
        shape = next(shape for shape in _shapes(scale) if shape.name == name)
        if scale == "full" and not has_devices():
            return skipped(NO_GPU)
        # The first of them alone: transformers would spread one process over all that it sees.
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
        import torch

        from tests.benchmarks.micro.on_gpu import measure

        if scale == "full" and not torch.cuda.is_available():
            return skipped("this build of torch does not reach the GPU")
        return measure(shape, way, torch.device("cuda", 0) if scale == "full" else torch.device("cpu"))

    def figures(self, rows: Rows) -> dict[str, str]:
        rows = {cell: rows[cell] for scale in ("full", "smoke") for cell in self.cells(scale) if cell in rows}
        if rows and all("skipped" in row for row in rows.values()):
            return {"table": next(iter(rows.values()))["skipped"]}
        found = {"table": table_of(rows)}
        for name in dict.fromkeys(cell.partition(": ")[0] for cell in rows):
            times = ratio(rows, name, "torch", "TRL")
            if times is not None:
                found[f"ratio_{name}"] = f"{times:.2f}"
            if (share := mfu(rows.get(f"{name}: torch", {}))) is not None:
                found[f"mfu_{name}"] = f"{100 * share:.0f} %"
        return found


def _shapes(scale: Scale) -> Sequence[Shape]:
    return SHAPES if scale == "full" else (TOY,)


def has_devices() -> bool:
    """Whether the kernel shows a GPU. Asking torch takes seconds in every cell."""
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


def table_of(rows: Rows) -> str:
    """A line for every way of every model, and the reason for one that could not be measured."""
    head = ["model", "learner", "ms an update", "tokens/s", "TFLOP/s", "MFU", "peak GiB", "norm of the gradient"]
    lines = []
    for cell, row in rows.items():
        name, _, way = cell.partition(": ")
        if "skipped" in row:
            lines.append([name, way, row["skipped"], *[""] * (len(head) - 3)])
            continue
        seconds, share = median(row["seconds"]), mfu(row)
        first = next(other for key, other in rows.items() if key.startswith(f"{name}: ") and "skipped" not in other)
        lines.append(
            [
                f"{name} ({row['parameters'] / 1e9:.2f} G parameters)",
                way,
                spread([1e3 * value for value in row["seconds"]], 0),
                f"{row['tokens'] / seconds:,.0f}",
                f"{row['model_flops'] / seconds / 1e12:.1f}",
                "-" if share is None else f"{100 * share:.1f} %",
                "-" if row["peak_gib"] is None else f"{row['peak_gib']:.1f}",
                f"{row['grad_norm']:.4f}" + ("" if same(row, first) else ", not the same work"),
            ]
        )
    return table(head, lines)
