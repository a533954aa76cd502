"""One run of the trial, in this process."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from components.config import Settings
from components.data.prompts import read_prompts, subset
from components.errors import CorrectableError
from components.files import read_jsonl
from components.layout import Layout
from components.learner.base import Learner
from components.policy import load_policy
from components.rewards import Scorer
from components.rollout import Collector, build_engine
from components.scheduling import Clusters, ranked_clusters
from components.seeds import derive
from components.training.assembly import assembled
from components.training.loop import train
from components.types import StepRecord
from tests.benchmarks.health.arms import Arm
from tests.benchmarks.health.faults import Fault
from tests.benchmarks.health.generated.drawing import fault_of
from tests.benchmarks.health.generated.servers import as_servers
from tests.benchmarks.health.grounds import TOY, Ground
from tests.benchmarks.health.judged import BASE
from tests.benchmarks.health.plan import sft_seed_of
from tests.benchmarks.health.restarts import going_on, leave
from tests.benchmarks.health.store import Run
from tests.recipes import prepare, recipe_settings

FINAL = -1
"""Stands for the step of the last measurement, of more prompts than those before."""
BREAKS = (RuntimeError, ValueError, ArithmeticError, CorrectableError)
"""What a fault may raise in the middle of a run; that it did, and when, is a result."""


def prepared(work: Path, sft_seed: int, ground: Ground = TOY) -> Path:
    """A folder with everything before training, made at the first call."""
    return prepare(work / f"sft-{sft_seed}", "dapo", {"seed": sft_seed, **ground.preparing}, str(ground.config))


def measure(work: Path, condition: str, seed: int, arm: Arm, ground: Ground = TOY) -> Run:
    """Train once and return what is to be kept."""
    sft_seed = sft_seed_of(condition, seed, ground)
    fault = planted(condition, seed, ground)
    healthy = ground.healthy.get(condition, ground.healthy[BASE])
    began = time.process_time()
    with tempfile.TemporaryDirectory(prefix="trial-") as name:
        layout = workspace(prepared(work, sft_seed, ground), Path(name))
        tree = healthy.settings(seed, fault.changes_on(ground), arm.changes, base=ground.settings)
        settings = recipe_settings(layout.root, healthy.recipe, str(ground.config), {}, tree)
        trial = Trial(settings, layout, fault, ground)
        trial.run()
        return Run(
            condition=condition,
            seed=seed,
            sft_seed=sft_seed,
            begins=fault.begins,
            steps=settings.train.steps,
            records=trial.records,
            held_out=trial.held_out,
            families=trial.families,
            final=trial.final,
            progress=trial.progress,
            crashed=trial.crashed,
            stopped_by=trial.stopped_by,
            arm=arm.name,
            responses=trial.responses,
            seconds=time.process_time() - began,
        )


def planted(condition: str, seed: int, ground: Ground = TOY) -> Fault:
    """The fault that a condition names; none where it is healthy."""
    if condition in ground.healthy:
        return Fault(seed)
    ground.check(condition)
    made = ground.faults[condition](seed) if condition in ground.faults else fault_of(condition, seed)
    return made.fitted(ground)


def workspace(ready: Path, folder: Path) -> Layout:
    """A workspace whose inputs are those of the prepared folder, which is never written to."""
    layout = Layout(folder)
    layout.out.mkdir()
    for path in (ready / "out").resolve().iterdir():
        (layout.out / path.name).symlink_to(path)
    return layout


class Trial:
    """A run under a fault, measured by the true verifier."""

    def __init__(self, settings: Settings, layout: Layout, fault: Fault, ground: Ground = TOY) -> None:
        self._settings, self._layout, self._fault, self._ground = settings, layout, fault, ground
        self.records: list[StepRecord] = []
        self.held_out: list[tuple[int, float]] = []
        self.families: list[tuple[int, dict[str, float]]] = []
        self.responses: list[dict[str, Any]] = []
        self.final, self.progress, self.crashed, self.stopped_by = 0.0, 0, "", ""

    def run(self) -> None:
        """Train to the end, or until something ends the run."""
        torch.set_num_threads(1)
        fault = self._fault
        wrappers = {
            "wrap_engine": lambda engine: as_servers(fault.engine(engine), fault),
            "wrap_learner": fault.learner,
            "wrap_schedule": fault.schedule,
            "wrap_scorer": fault.scorer,
        }
        with TrueAccuracy(self._layout, self._settings, self._ground) as truth:
            going_on(lambda: self._train(truth, wrappers), fault, self._layout.state / "train")

    def _train(self, truth: TrueAccuracy, wrappers: dict[str, Any]) -> None:
        """Train from the newest checkpoint on; a fault may stop the run, see `going_on`."""
        fault = self._fault
        with assembled(self._settings, self._layout, self._clusters(), **wrappers) as parts:
            learner = parts.state.learner
            if not parts.state.step:
                self._measured(0, truth, learner)

            def on_step(record: StepRecord) -> None:
                self.records.append(record)
                fault.clock.step = record.step + 1
                if fault.clock.step % self._ground.eval_every == 0:
                    self._measured(fault.clock.step, truth, learner)
                leave(fault, parts)

            try:
                train(parts, on_step)
            except BREAKS as error:
                self.crashed = f"{type(error).__name__}: {error}".splitlines()[0][:200]
                self.records += unseen(parts.state.log, len(self.records))
            self.final, families = truth.of(learner, self._ground.final_prompts, self._ground.final_samples)
            self.families.append((FINAL, families))
            self.progress, self.stopped_by = parts.state.progress, parts.state.stopped_by or ""
            if parts.state.ledger.exists():
                self.responses = list(read_jsonl(parts.state.ledger))

    def _measured(self, step: int, truth: TrueAccuracy, learner: Learner) -> None:
        accuracy, families = truth.of(learner)
        self.held_out.append((step, accuracy))
        self.families.append((step, families))

    def _clusters(self) -> Clusters:
        """The clusters of the training prompts, with what the fault makes of these."""
        clusters = ranked_clusters(read_prompts(self._layout.split("train")), self._layout)
        order = sorted((p for members in clusters.values() for p in members), key=lambda prompt: prompt.id)
        changed = {prompt.id: prompt for prompt in self._fault.prompts(order)}
        return {number: [changed[prompt.id] for prompt in members] for number, members in clusters.items()}


def unseen(log: Path, seen: int) -> list[StepRecord]:
    """Steps of the log after the first ``seen``: that in which a run breaks is logged without a call of `on_step`."""
    rows = list(read_jsonl(log))[seen:] if log.exists() else []
    return [StepRecord(row["step"], row["signals"], row["notes"]) for row in rows]


class TrueAccuracy:
    """Accuracy on fixed test prompts, with clean weights, template and verifier; no part of the run sees it."""

    def __init__(self, layout: Layout, settings: Settings, ground: Ground = TOY) -> None:
        self._ground = ground
        policy = load_policy(layout.sft_checkpoint, settings.policy)
        self._engine, self._scorer = build_engine(policy, settings.rollout), Scorer(settings.reward)
        policy.model.to("meta")  # the engine has a copy of its own; a language model takes half a gigabyte
        self._collector = Collector(policy, self._engine, self._scorer, settings.rollout)
        prompts = subset(read_prompts(layout.split("test")), ground.final_prompts, derive(0, "held-out"))
        self._prompts = sorted(prompts, key=lambda one: derive(0, "order", one.id)) if ground.shuffled else prompts

    def __enter__(self) -> TrueAccuracy:
        return self

    def __exit__(self, *_: object) -> None:
        self._scorer.__exit__()

    def of(
        self, learner: Learner, prompts: int | None = None, samples: int | None = None
    ) -> tuple[float, dict[str, float]]:
        """Of the learner's present weights, and by family; 0 for weights that nothing can be sampled from."""
        weights = learner.weights()
        if not all(bool(torch.isfinite(w).all()) for w in weights.values()):
            return 0.0, {}
        self._engine.load_weights(weights)
        count = samples or self._ground.test_samples
        sampling = self._collector.sampling(derive(0, "held-out"), n=count)
        groups = self._collector.groups(self._prompts[: prompts or self._ground.test_prompts], sampling)
        right = sum(accuracy == 1 for group in groups for accuracy in group.accuracies)
        families: dict[str, list[bool]] = {}
        for group in groups:
            families.setdefault(group.prompt.family, []).extend(accuracy == 1 for accuracy in group.accuracies)
        by_family = {name: round(fmean(found), 4) for name, found in sorted(families.items())}
        return right / (len(groups) * count), by_family
