"""Time lost to checkpoints: `make bench`.

A run of the demo's size with checkpoints twice as often as the demo's, written in the background, by the loop, and
only at its ends; then one checkpoint of larger policies. Lost is what the loop waits for, and the processor time of the
thread that writes, which is lost as well where every core is busy.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from rich.console import Console
from rich.table import Table

from components.config import Settings
from components.config.policy import TinyModel
from components.config.reading import merge
from components.data.prompts import read_prompts
from components.files import read_json, write_json, write_jsonl
from components.layout import Layout
from components.learner.base import Learner
from components.learner.batch import Batch
from components.learner.build import build_learner
from components.policy import Policy
from components.policy.tiny import build_model
from components.resume import ResumeState
from components.scheduling import ranked_clusters
from components.tasks import TASKS
from components.training.assembly import assembled
from components.training.checkpoints import CheckpointWriter
from components.training.loop import train
from tests.benchmarks.test_objective_cost import demo, policy_and_batch
from tests.integration.ranks import learning

STEPS = 10
AIM = 0.02
"""Share of a run's time that its checkpoints may take."""
SIZES = {
    "0.6M (the demo's)": TinyModel(hidden_size=128, layers=3),
    "25M": TinyModel(hidden_size=512, layers=8, heads=8, kv_heads=8, head_dim=64, intermediate_size=1408),
    "200M": TinyModel(hidden_size=1024, layers=16, heads=16, kv_heads=16, head_dim=64, intermediate_size=2816),
}
BYTES = 12
"""Of a checkpoint per parameter: fp32 weights and AdamW's two moments."""


class Meter(CheckpointWriter):
    """A writer that is timed: what the loop waits for, and what the writing takes."""

    waited = work = cpu = 0.0

    def write(self, *args: Any, **more: Any) -> None:
        began = time.perf_counter()
        super().write(*args, **more)
        self.waited += time.perf_counter() - began

    def wait(self) -> None:
        if self._writing is None or self._writing.done():
            return super().wait()
        began = time.perf_counter()
        super().wait()
        self.waited += time.perf_counter() - began

    def _complete(self, *args: Any) -> None:
        began, cpu = time.perf_counter(), time.thread_time()
        super()._complete(*args)
        self.work += time.perf_counter() - began
        self.cpu += time.thread_time() - cpu


def prepared(root: Path, settings: Settings) -> Layout:
    """What the stages before training leave, without having trained anything."""
    layout = Layout(root)
    prompts = TASKS["arithmetic"](settings.data.source.model_copy(update={"rows": 400}), 0)
    for split in ("train", "dev"):
        write_jsonl(layout.split(split), (prompt.to_dict() for prompt in prompts))  # type: ignore[arg-type]
    policy, _ = policy_and_batch(settings)
    policy.save(layout.sft_checkpoint)
    rows = [{"id": p.id, "cluster": i % 8, "rank": i // 8, "nll": 1.0} for i, p in enumerate(prompts)]
    write_jsonl(layout.clusters, rows)
    write_json(layout.triage, {"verdict": "accept", "reasons": [], "success": {}})
    return layout


def run(root: Path, every: int, asynchronous: bool) -> dict[str, float]:
    """Seconds of a run of the demo's size, and what its checkpoints took."""
    saving = {"checkpoint_every": every, "checkpoints": {"asynchronous": asynchronous}}
    how = {"train": {"steps": STEPS, "eval_prompts": 8, **saving}}
    tree = merge(demo(None).model_dump(mode="json"), {**how, "health": {"enabled": False}})
    settings = Settings.model_validate(merge(tree, {"rollout": {"dynamic_sampling": None}}))
    layout = prepared(root, settings)
    clusters = ranked_clusters(read_prompts(layout.split("train")), layout)
    with assembled(settings, layout, clusters) as parts:
        meter = Meter(parts.state.resume, asynchronous=asynchronous)
        parts.state.writer = meter
        began = time.perf_counter()
        train(parts, lambda _: None)
        seconds = time.perf_counter() - began
        meter.close()
    saved = len(parts.state.resume.steps())
    assert read_json(parts.state.resume.folder(STEPS) / "learner.json")["updates"] >= 0
    return {"seconds": seconds, "waited": meter.waited, "cpu": meter.cpu * asynchronous, "saved": float(saved)}


@pytest.mark.timeout(1200)
def test_a_run_loses_little_time_to_its_checkpoints(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    arms = {"in the background": (5, True), "by the loop": (5, False), "at the start and the end": (1000, True)}
    found = {name: run(tmp_path / name, *how) for name, how in arms.items()}
    table = Table("checkpoints", "run s", "written", "loop waited s", "writer's cpu s", "lost", title=f"{STEPS} steps")
    for name, row in found.items():
        lost = (row["waited"] + row["cpu"]) / row["seconds"]
        figures = (f"{row[key]:.3f}" for key in ("waited", "cpu"))
        table.add_row(name, f"{row['seconds']:.1f}", f"{row['saved']:.0f}", *figures, f"{lost:.2%}")
    Console().print(table)
    background = found["in the background"]
    assert (background["waited"] + background["cpu"]) / background["seconds"] <= AIM


def policy_of(size: str) -> tuple[Policy, Batch]:
    """A policy, and a short batch with which its moments come into being."""
    tiny, batch = policy_and_batch(demo(None))
    model = build_model(SIZES[size], tiny.tokenizer, 0)
    count = sum(p.numel() for p in model.parameters())
    if psutil.virtual_memory().available < 3 * BYTES * count:
        pytest.skip(f"not enough memory for {count:,} parameters three times over")
    return Policy(model, tiny.tokenizer), batch.rows(slice(2)).trimmed()


def show(title: str, learner: Learner, folder: Path) -> None:
    """Print what one checkpoint of this learner takes."""
    table = Table("written", "MB", "loop waits s", "until it is complete s", title=f"one checkpoint: {title}")
    for name, asynchronous in (("by the loop", False), ("in the background, first", True), ("in the background", True)):
        state = ResumeState(folder / name, {})
        writer = CheckpointWriter(state, asynchronous=asynchronous)
        begin = learner.snapshot if asynchronous else (lambda folder: lambda: learner.save(folder))
        began = time.perf_counter()
        writer.write(1, begin, {1})
        waited = time.perf_counter() - began
        writer.wait()
        whole = time.perf_counter() - began
        writer.close()
        size_mb = sum(path.stat().st_size for path in state.folder(1).iterdir()) / 1e6
        table.add_row(name, f"{size_mb:.0f}", f"{waited:.3f}", f"{whole:.3f}")
        state.drop_all_but(())
    Console().print(table)


@pytest.mark.parametrize("size", SIZES)
def test_one_checkpoint_of_a_policy(tmp_path: Path, size: str) -> None:
    policy, batch = policy_of(size)
    learner = build_learner(policy, demo(None))
    learner.step(batch, seed=0)
    show(f"{size}, {policy.parameters:,} parameters", learner, tmp_path)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["deepspeed", "fsdp2"])
def test_one_checkpoint_of_two_ranks(tmp_path: Path, kind: str) -> None:
    policy, batch = policy_of("25M")
    spread = {"learner": {"kind": kind, "ranks": {"processes": 2}}, "launch": {"kind": "processes"}}
    settings = Settings.model_validate(merge(demo(None).model_dump(mode="json"), spread))
    with learning(settings, tmp_path, policy) as learner:
        learner.step(batch, seed=0)
        show(f"25M, {kind} over two ranks", learner, tmp_path)
