"""What an update costs in one process and in two: ms a step, seconds to save and to start: `make bench`.

All learners get the same batches and must end with the same loss. On one machine without a GPU two ranks share
cores and memory's bandwidth: the figures show what a sharding costs, not what several machines gain.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from rich.table import Table

from components.config.policy import TinyModel
from components.learner.base import Learner
from components.learner.batch import Batch, batch_of_rows
from components.policy import Policy
from components.policy.tiny import build_model

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from factories import policy, settings

from tests.integration.ranks import learning

SHAPE = TinyModel(hidden_size=192, layers=4, heads=6, kv_heads=2, head_dim=32, intermediate_size=512, vocab_size=272)
ROWS, PROMPT, RESPONSE, WARM, STEPS = 64, 16, 32, 2, 6
LEARNERS: dict[str, dict[str, Any]] = {
    "torch": {},
    **{f"ZeRO-{stage}": {"kind": "deepspeed", "zero": {"stage": stage}} for stage in (1, 2, 3)},
    "FSDP2": {"kind": "fsdp2"},
    "FSDP2, bf16": {"kind": "fsdp2", "compute_dtype": "bfloat16"},
    "FSDP2, checkpointed": {"kind": "fsdp2", "activation_checkpointing": True},
}


def batch() -> Batch:
    generator = torch.Generator().manual_seed(0)

    def ids(length: int) -> list[int]:
        return torch.randint(4, 260, (length,), generator=generator).tolist()

    scored = batch_of_rows([(ids(PROMPT), ids(RESPONSE)) for _ in range(ROWS)], pad_id=0)
    advantages = torch.randn(ROWS, 1, generator=generator).expand(scored.response_mask.shape)
    return Batch(**{**scored.__dict__, "advantages": advantages})


def measure(learner: Learner, folder: Path) -> tuple[float, float, float]:
    """Median ms of a step, seconds to save, and the last loss."""
    times, signals = [], {}
    for step in range(WARM + STEPS):
        began = time.perf_counter()
        signals = learner.step(batch(), seed=step)
        times.append(1e3 * (time.perf_counter() - began))
    folder.mkdir(parents=True)
    began = time.perf_counter()
    learner.save(folder)
    return statistics.median(times[WARM:]), time.perf_counter() - began, signals["loss"]


@pytest.mark.timeout(1800)
def test_ms_a_step_of_every_learner(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    model = build_model(SHAPE, policy().tokenizer, seed=0)
    title = f"{sum(p.numel() for p in model.parameters()):,} parameters, {ROWS} x {PROMPT + RESPONSE} tokens a step"
    table = Table("learner", "ranks", "ms a step", "s to save", "s to start", title=title)
    losses = {}
    for name, chosen in LEARNERS.items():
        sections = {"kind": "torch", "lr": 1e-4, "micro_batch_tokens": 2048, **chosen}
        own = Policy(build_model(SHAPE, policy().tokenizer, seed=0), policy().tokenizer)
        ranks = 2 if "kind" in chosen else 1
        launch = {"kind": "processes" if ranks > 1 else "inline"}
        began = time.perf_counter()
        with learning(settings(learner=sections, launch=launch), tmp_path / name, own) as learner:
            started = time.perf_counter() - began
            ms, save, losses[name] = measure(learner, tmp_path / name / "saved")
        table.add_row(name, str(ranks), f"{ms:,.0f}", f"{save:.2f}", f"{started:.1f}")
    Console(width=100).print(table)
    assert {name: pytest.approx(losses["torch"], abs=1e-2) for name in losses} == losses
    exact = {name: loss for name, loss in losses.items() if "bf16" not in name}
    assert {name: pytest.approx(losses["torch"], abs=1e-4) for name in exact} == exact
