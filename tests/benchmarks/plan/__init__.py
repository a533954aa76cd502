"""Section `plan`: what `evenkeel plan` says that processes take, and what they take.

Policies with random weights in fp32, two steps with sampling, reference, update, hand-over and checkpoint, one thread
for each process, two ranks where the learner has any. Measured is the peak of resident memory above what is resident
once everything is imported; ``returned`` is with an allocator that gives freed memory back at once
(`MALLOC_MMAP_THRESHOLD_`), so that it is that of tensors which exist.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from components.errors import InputError
from components.files import read_json
from components.processes.environments import free_port
from components.processes.ranked import STARTED
from tests.benchmarks.plan.cases import KINDS, SIZES, TOY, Size
from tests.benchmarks.section import PREPARED, Row, Rows, Scale, Section
from tests.code_graph import ROOT

WAYS = ("full", "lora")
RETURNED = "returned"
DEFAULT = "default"
SMALL = "25M"
"""Measured with both allocators, the others with memory given back alone."""
MALLOC = {RETURNED: {"MALLOC_MMAP_THRESHOLD_": "65536"}, DEFAULT: dict[str, str]()}
TITLES = {"full": "all weights", "lora": "LoRA"}


class Plan(Section):
    title: ClassVar[str] = "Memory, planned and measured"
    limit: ClassVar[float] = 1800.0

    def cells(self, scale: Scale) -> Sequence[str]:
        if scale == "smoke":
            return [f"{TOY.name}: torch, full, {RETURNED}"]
        return [
            f"{size}: {kind}, {way}, {malloc}"
            for size in SIZES
            for way in WAYS
            for kind in KINDS
            for malloc in MALLOC
            if size == SMALL or malloc == RETURNED
        ]

    def measure(self, cell: str, scale: Scale, folder: Path) -> Row:
        size, kind, way, malloc = parts_of(cell)
        checkpoint, out = folder / PREPARED / size.name, folder / "out"
        if not (checkpoint / "config.json").is_file():
            make(size, checkpoint)
        out.mkdir()
        ranks = KINDS[kind].get("ranks", {}).get("processes", 1)
        command = [
            sys.executable,
            "-m",
            "tests.benchmarks.plan.process",
            size.name,
            kind,
            way,
            str(checkpoint),
            str(out),
        ]
        run(command, [{**MALLOC[malloc], **place} for place in places(ranks)], out)
        return {"ranks": [read_json(out / f"rank-{rank}.json") for rank in range(ranks)]}

    def figures(self, rows: Rows) -> dict[str, str]:
        from tests.benchmarks.plan.figures import tables

        return tables({cell: rows[cell] for scale in ("full", "smoke") for cell in self.cells(scale) if cell in rows})


def parts_of(cell: str) -> tuple[Size, str, str, str]:
    """Size, kind of learner, way and allocator of a cell."""
    name, _, rest = cell.partition(": ")
    kind, way, malloc = rest.split(", ")
    return {**SIZES, TOY.name: TOY}[name], kind, way, malloc


def make(size: Size, folder: Path) -> None:
    """A checkpoint of random weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from components.policy.tiny import build_tokenizer

    tokenizer = build_tokenizer(["1+1=2"], 320, 2048)
    ids = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**size.config, **ids)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def places(ranks: int) -> Iterator[dict[str, str]]:
    """What torchrun would leave in the environment of every rank; nothing for a learner without ranks."""
    shared = {"OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
    if ranks == 1:
        yield shared
        return
    shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks)}
    shared |= {"LOCAL_RANK": "0", STARTED: "plan", "GLOO_SOCKET_IFNAME": "lo"}
    yield from ({**shared, "RANK": str(rank)} for rank in range(ranks))


def run(command: Sequence[str], environments: Sequence[dict[str, str]], out: Path) -> None:
    """One process for each environment, until all have ended.

    Raises:
        InputError: one failed, with the end of its log.
    """
    with ExitStack() as stack:
        logs = [stack.enter_context((out / f"rank-{rank}.log").open("wb")) for rank in range(len(environments))]
        processes: list[Any] = []
        for environment, log in zip(environments, logs, strict=True):
            started = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
            processes.append(subprocess.Popen(command, env=started, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT))
        try:
            codes = [process.wait() for process in processes]
        finally:
            for process in processes:
                process.kill()
    for rank, code in enumerate(codes):
        if code:
            tail = (out / f"rank-{rank}.log").read_text("utf-8", "replace")[-2000:]
            raise InputError(f"rank {rank} ended with {code}:\n{tail}", where=str(out), how="read its log")
