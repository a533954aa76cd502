"""Weights, or an adapter alone, from a learner to a real vLLM server on CPUs, with the proof; and the same bytes,
written and read."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median

import torch

from components.config.policy import LoraSettings, PolicySettings
from components.config.rollout import RolloutSettings
from components.errors import CorrectableError
from components.policy import Policy, load_policy
from components.policy.lora import adapted
from components.policy.stored import Stored, write_buckets
from components.policy.weights import weights_of
from components.processes import vllm_python
from components.rollout import build_engine
from tests.benchmarks.section import Row, Rows, Scale, Section, skipped
from tests.benchmarks.spread import spread, table
from tests.code_graph import ROOT
from tests.vllm.tiny import tiny

REAL = ROOT / "models/smollm2-135m-instruct"
WAYS = ("files", "broadcast", "adapter")
ROUNDS = 7
STEP = 1e-4
"""By how much a weight moves between two hand-overs."""


class HandOver(Section):
    title = "Hand-over"

    def cells(self, scale: Scale) -> Sequence[str]:
        return [f"{name}: {way}" for name in (("tiny", "135M") if scale == "full" else ("tiny",)) for way in WAYS]

    def lacking(self) -> str:
        try:
            vllm_python(None)
        except CorrectableError as error:
            return error.what
        return ""

    def absent(self) -> dict[str, str]:
        return dict.fromkeys(("table", "source"), "not measured: no vLLM (`make vllm-env`)")

    def measure(self, cell: str, scale: Scale, folder: Path) -> Row:
        name, way = cell.split(": ")
        if name == "135M" and not REAL.exists():
            return skipped("no model: `make model`")
        torch.set_num_threads(1)
        base = tiny() if name == "tiny" else load_policy(REAL, PolicySettings())
        policy = adapted(base, LoraSettings(), seed=0) if way == "adapter" else base
        server = {"kind": "vllm", "processes": 1, "transfer": way, "max_model_len": 256}
        how = RolloutSettings.model_validate({"engine": server})
        with closing(build_engine(base, how, folder, weights_of(policy))) as engine:
            pairs = []
            for number in range(ROUNDS if scale == "full" else 1):
                move(policy, number)
                began = time.perf_counter()
                engine.load_weights(weights_of(policy))
                pairs.append((time.perf_counter() - began, on_disk(policy, folder / f"bytes-{number}")))
        seconds, written = zip(*pairs, strict=True)
        size = sum(weight.nbytes for weight in policy.trainable().values())
        ratios = [one / other for one, other in pairs]
        return {"bytes": size, "seconds": list(seconds), "disk_seconds": list(written), "ratios": ratios}

    def figures(self, rows: Rows) -> dict[str, str]:
        lines = []
        for cell, row in rows.items():
            if "skipped" in row:
                lines.append([cell, "", row["skipped"], "", ""])
                continue
            took, disk = (spread(row[name]) for name in ("seconds", "disk_seconds"))
            lines.append([cell, f"{row['bytes'] / 1e6:,.1f}", took, disk, f"{median(row['ratios']):.1f}"])
        head = ["policy: way", "MB", "hand-over with proof, s", "the same bytes written and read, s", "ratio"]
        return {"table": table(head, lines)}


@torch.no_grad()
def move(policy: Policy, seed: int) -> None:
    """Change what is trained, as an update does."""
    generator = torch.Generator().manual_seed(seed)
    for weight in policy.trainable().values():
        weight.add_(STEP * torch.randn(weight.shape, generator=generator))


def on_disk(policy: Policy, folder: Path) -> float:
    """Seconds in which what is trained is written into files and read again."""
    folder.mkdir()
    began = time.perf_counter()
    found = Stored(list(write_buckets(policy.trainable(), folder)))
    for name in found:
        _ = found[name]
    return time.perf_counter() - began
