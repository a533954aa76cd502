"""What both sides get: one checkpoint, prompts, a verifier, and the held-out measurement, which no clock counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from components.config import Settings, load
from components.config.rollout import TorchEngine as TorchEngineSettings
from components.data.prompts import read_prompts
from components.layout import Layout
from components.policy import Policy, load_policy
from components.rewards import build_verifier
from components.rollout.base import Sampling
from components.rollout.torch_engine import TorchEngine
from components.seeds import derive
from components.stages import run_stage
from components.types import Prompt
from tests.benchmarks.accuracy.origin import origin
from tests.benchmarks.section import Scale
from tests.code_graph import ROOT

UNMEASURED = ("train.eval_prompts=1",)
"""Held-out accuracy is measured from outside, on both sides alike; development prompts would be extra work."""


@dataclass(frozen=True)
class Task:
    """A configuration that both sides train on. Changes are settings, as ``--set`` takes them."""

    config: Path
    stages: Sequence[str]
    """What is run before training, once for all cells."""
    changes: Sequence[str]
    """Of every run, and of the stages before."""
    same: Sequence[str]
    """What TRL's trainer does not do is left out, so that a step is the same work on both sides."""
    own: Sequence[str]
    """Our own recipe."""
    steps: int
    prompts: int
    """Of a step."""
    held_out: int
    """Test prompts at most."""
    every: int
    """Steps from one measurement of held-out accuracy to the next."""
    samples: int = 4
    """Completions of a test prompt."""
    clock: Callable[[], float] = time.perf_counter
    """What time is read from; ``time.process_time`` leaves out our verifiers, which have processes of their own."""

    def settings(self, extra: Sequence[str], seed: int, steps: int | None = None) -> Settings:
        """The configuration with ``extra`` changes, for as many steps as the comparison takes, or for ``steps``."""
        steps = steps or self.steps
        length = [f"seed={seed}", f"train.steps={steps}", f"train.prompts_per_step={self.prompts}"]
        return load(self.config, [*self.changes, *UNMEASURED, *extra, *length, f"train.eval_every={steps}"])

    def prepared(self, folder: Path) -> Layout:
        """The stages before training, run once for all cells; one checkpoint, whatever the seed of the training.

        Other settings, code or packages have a place of their own below ``folder``.
        """
        settings = load(self.config, list(self.changes))
        own = folder / origin(settings, self.stages)
        layout, ready = Layout(own), own / "ready"
        if not ready.exists():
            for stage in self.stages:
                run_stage(stage, settings, layout)
            ready.touch()
        return layout


class HeldOut:
    """pass@1 of a policy on fixed prompts: the same prompts, draws and verifier for every arm and step."""

    def __init__(self, task: Task, layout: Layout) -> None:
        settings = task.settings(task.same, 0)
        policy = load_policy(layout.sft_checkpoint, settings.policy)
        self._prompts = list(read_prompts(layout.split("test")))[: task.held_out]
        self._asked = [policy.encode_prompt(prompt.text) for prompt in self._prompts]
        self._engine = TorchEngine(policy, TorchEngineSettings())
        self._verifier = build_verifier(settings.reward.verifier)
        self._sampling = Sampling(task.samples, settings.rollout.max_new_tokens, 1.0, derive(0, "held out"))

    def pass_at_1(self, weights: dict[str, torch.Tensor]) -> float:
        self._engine.load_weights(weights)
        answers = self._engine.generate(self._asked, self._sampling)
        right = [
            self._verifier.accuracy(prompt, completion.text)
            for prompt, group in zip(self._prompts, answers, strict=True)
            for completion in group
        ]
        return sum(right) / len(right)


def training_prompts(layout: Layout) -> list[Prompt]:
    return list(read_prompts(layout.split("train")))


def start(layout: Layout, settings: Settings) -> Policy:
    return load_policy(layout.sft_checkpoint, settings.policy)


_DEMO = Task(
    config=ROOT / "configs" / "demo.yaml",
    stages=("data", "audit", "sft", "admission", "triage", "clusters"),
    changes=("health.canaries={carries: null, comparison: null, layout: null, names: null}",),
    # Group size, batch, learning rate with its warm-up, clip, token mean and AdamW are the demo's, and TRL gets them
    # from these settings. Advantages are TRL's: it has no setting for what it divides rewards by.
    same=(
        "objective.advantage.std=unbiased",
        "objective.advantage.eps=1e-4",
        "schedule.kind=uniform",
        "rollout.dynamic_sampling=null",
        "rollout.two_stage=null",
        "reward.soft_overlong=null",
        "objective.correction=null",
        "audit.second=null",
        "health.responses.enabled=false",
    ),
    # Chosen on seed 1, which is none of those that are reported.
    own=(
        "schedule={kind: ads, window: 8, active: 4, move: outside, min_prob: 0.5}",
        "rollout.dynamic_sampling={max_attempts: 1}",
        "rollout.two_stage=null",
        "learner.updates_per_step=2",
        "learner.lr=3e-4",
    ),
    steps=28,
    prompts=32,
    held_out=200,
    every=2,
)
_SMALL = (
    "data.source.rows=900",
    "sft.steps=12",
    "triage.prompts=8",
    "clusters.k=4",
    "triage.override=only for its time",
    "train.prompts_per_step=8",
    "admission.max_prompt_share=1",
)
DEMO: Mapping[Scale, Task] = {
    "full": _DEMO,
    "smoke": replace(
        _DEMO,
        changes=(*_DEMO.changes, *_SMALL),
        own=(*_DEMO.own, "schedule.window=2"),
        steps=2,
        prompts=8,
        held_out=4,
        every=1,
    ),
}
