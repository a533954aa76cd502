"""One process of a measurement: ``python -m tests.benchmarks.plan.process SIZE KIND full|lora CHECKPOINT OUT``.

Rank 0, or the only process, does what the loop does in a step with the parts that it really has: the learner, the
embedded engine, the reference. Other ranks follow it. Each writes its peaks to ``OUT/rank-N.json``, by moment: MB above
what is resident once everything is imported.
"""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from components.files import write_json
from components.learner.batch import Batch, batch_of_rows
from components.learner.build import build_learner
from components.learner.follower import follow
from components.learner.group import Group
from components.policy.beginning import beginning
from components.policy.lora import AdaptedPolicy
from components.rollout import build_engine
from components.rollout.base import Sampling
from components.training.update import hand_over
from tests.benchmarks.micro.memory import RESET, megabytes
from tests.benchmarks.plan.cases import SIZES, TOY, Size, settings_of

MOMENTS = {
    "start": "start",
    "logprobs": "update",
    "step": "update",
    "whole": "hand-over",
    "broken": "hand-over",
    "save": "checkpoint",
    "snapshot": "checkpoint",
}
"""What a command of rank 0 is in the plan."""


class Peaks:
    """Highest resident memory by moment, MB above the beginning."""

    def __init__(self) -> None:
        gc.collect()
        self.base, self.found = megabytes("VmRSS"), dict[str, float]()
        self._reset()

    def mark(self, moment: str) -> None:
        """What was highest since the last mark belongs to this moment; of several the largest counts."""
        self.found[moment] = max(self.found.get(moment, 0.0), round(megabytes("VmHWM") - self.base, 1))
        self._reset()

    def _reset(self) -> None:
        RESET.write_text("5", "utf-8")


class Watched(Group):
    """A group whose followers note their peak after every command."""

    peaks: Peaks
    command = ""

    def receive(self) -> tuple[Any, ...]:
        found = super().receive()
        self.command = str(found[0])
        return found

    def report_done(self) -> None:
        self.peaks.mark(MOMENTS.get(self.command, "update"))
        super().report_done()


def batch_for(size: Size, seed: int) -> Batch:
    """Rows of random tokens, ragged as real ones are, so that attention is masked, with advantages that are not 0."""
    generator = torch.Generator().manual_seed(seed)

    def ids(length: int) -> list[int]:
        return torch.randint(4, 260, (length,), generator=generator).tolist()

    prompts = [ids(size.prompt) for _ in range(size.rows // size.group)]
    lengths = [size.width - size.prompt - row % size.group for row in range(size.rows)]
    rows = [(prompts[row // size.group], ids(length)) for row, length in enumerate(lengths)]
    scored = batch_of_rows(rows, pad_id=0)
    advantages = torch.randn(size.rows, 1, generator=generator).expand(scored.response_mask.shape)
    return Batch(**{**scored.__dict__, "advantages": advantages})


def lead(size: Size, kind: str, lora: bool, checkpoint: Path, out: Path, peaks: Peaks) -> None:
    """Two steps of rank 0."""
    settings = settings_of(size, kind, lora, checkpoint)
    learned, weights = beginning(checkpoint, settings, apart=kind != "torch")
    policy = learned.base if isinstance(learned, AdaptedPolicy) else learned
    with closing(build_learner(learned, settings, weights, reference=True)) as learner:
        engine = build_engine(policy, settings.rollout, out, learner.weights())
        peaks.mark("start")
        for step in range(2):
            batch = batch_for(size, step)
            prompts: list[list[int]] = batch.input_ids[:: size.group, : size.prompt].tolist()
            engine.generate(prompts, Sampling(size.group, settings.rollout.max_new_tokens, 1.0, step))
            peaks.mark("sample")
            batch = Batch(**{**batch.__dict__, "ref_logp": learner.reference(batch)})
            learner.step(batch, seed=step)
            peaks.mark("update")
            hand_over(learner, engine.load_weights)
            peaks.mark("hand-over")
            folder = out / f"checkpoint-{step}"
            folder.mkdir()
            if settings.train.checkpoints.asynchronous:
                learner.snapshot(folder)()
            else:
                learner.save(folder)
            peaks.mark("checkpoint")
            shutil.rmtree(folder)


def main(arguments: list[str]) -> None:
    name, kind, way, checkpoint, out = arguments
    size, lora = {**SIZES, TOY.name: TOY}[name], way == "lora"
    rank = int(os.environ.get("RANK", "0"))
    torch.set_num_threads(1)
    for loaded_late in ("learner.sharding.fsdp2", "learner.sharding.zero", "rollout.torch_engine"):
        importlib.import_module(f"components.{loaded_late}")
    peaks = Peaks()
    if rank:
        group = Watched(settings_of(size, kind, lora, Path(checkpoint)).learner.ranks)
        group.peaks = peaks
        follow(group)
    else:
        lead(size, kind, lora, Path(checkpoint), Path(out), peaks)
    write_json(Path(out) / f"rank-{rank}.json", {"imported_mb": round(peaks.base, 1), **peaks.found})


if __name__ == "__main__":
    main(sys.argv[1:])
