"""What experts do to importance ratios: token ratios jump, GSPO's do not, and R3 calms the tokens. `make bench`.

The SFT checkpoint of `configs/moe.yaml`, and batches that its bfloat16 engine sampled once. Every arm trains from that
checkpoint on the same batches in the same order, four updates each, and its own ratios pi / pi_old are written down as
its loss sees them. Prints two tables: the gap between engine and learner before any update, and the ratios during them.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from components.config import Settings, load
from components.data.prompts import read_prompts
from components.layout import Layout
from components.learner import torch_learner
from components.learner.batch import Batch, build_batch
from components.learner.build import build_learner
from components.learner.scoring import score_all
from components.objectives.objective import Terms
from components.objectives.tokens import mean_per_sequence
from components.policy import Policy, load_policy
from components.rewards import Scorer
from components.rollout import Collector, build_engine
from components.stages import run_stage
from components.training.credit import Credit

CONFIGS = Path(__file__).parents[2] / "configs"
STEPS = int(os.environ.get("EVENKEEL_BENCH_STEPS", "8"))
ARMS = {"token ratio": ("dapo", False), "token ratio, R3": ("dapo", True), "GSPO": ("gspo", False)}
"""Recipe of the objective, and whether the routes are replayed."""


@dataclass(frozen=True)
class Start:
    """What all arms begin with. ``workspace`` may be kept from run to run: ``EVENKEEL_BENCH_WORKSPACE``."""

    settings: Settings
    policy: Policy
    batches: Sequence[Batch]


def settings_of(recipe: str, replay: bool) -> Settings:
    """`configs/moe.yaml` with the objective of a recipe."""
    moe = load(CONFIGS / "moe.yaml")
    objective = load(CONFIGS / "recipes" / f"{recipe}.yaml").objective
    learner = moe.learner.model_copy(update={"routing_replay": replay, "updates_per_step": 4, "warmup": 0})
    return moe.model_copy(update={"objective": objective, "learner": learner})


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Start:
    torch.set_num_threads(1)
    settings = settings_of("dapo", replay=False)
    kept = os.environ.get("EVENKEEL_BENCH_WORKSPACE")
    layout = Layout(Path(kept) if kept else tmp_path_factory.mktemp("moe"))
    if not layout.sft_checkpoint.exists():
        run_stage("data", settings, layout)
        run_stage("sft", settings, layout)
    policy = load_policy(layout.sft_checkpoint, settings.policy)
    return Start(settings, policy, sampled(settings, policy, layout))


def sampled(settings: Settings, policy: Policy, layout: Layout) -> list[Batch]:
    """Batches with routes and advantages, of the groups that carry a gradient."""
    count = settings.train.prompts_per_step
    prompts = read_prompts(layout.split("train"))
    credit = Credit(build_learner(fresh(policy), settings), None, policy, settings.objective)
    batches = []
    with Scorer(settings.reward) as scorer:
        collector = Collector(policy, build_engine(policy, settings.rollout), scorer, settings.rollout)
        for step in range(STEPS):
            chosen = [prompts[i % len(prompts)] for i in range(step * count, (step + 1) * count)]
            groups = [g for g in collector.groups(chosen, collector.sampling(step)) if g.informative]
            batches.append(credit.assign(build_batch(groups, policy.pad_id), groups, step).batch)
    return batches


def fresh(policy: Policy) -> Policy:
    return replace(policy, model=copy.deepcopy(policy.model))


# Before any update


def gap(start: Start, replay: bool) -> dict[str, float]:
    """How far the fp32 learner is from the bfloat16 engine, token by token and as means of sequences (nats)."""
    tokens, sequences = [], []
    for batch in start.batches:
        stats = score_all(start.policy.model, batch, 1.0, 4096, replay=replay)
        mask = batch.response_mask
        difference = torch.where(mask, stats.logp - batch.rollout_logp, 0.0)
        tokens.append(difference[mask])
        sequences.append(mean_per_sequence(difference, mask).squeeze(1)[mask.any(1)])
    token, sequence = torch.cat(tokens).abs(), torch.cat(sequences).abs()
    return {
        "mean": token.mean().item(),
        "p999": token.quantile(0.999).item(),
        "max": token.max().item(),
        "sequence max": sequence.max().item(),
    }


def test_the_gap_between_engine_and_learner(start: Start) -> None:
    found = {"free": gap(start, replay=False), "R3": gap(start, replay=True)}
    table = Table(
        "routing of the learner",
        "mean",
        "99.9 %",
        "largest",
        "largest sequence mean",
        title="|log ratio| to the engine",
    )
    for name, row in found.items():
        table.add_row(name, *(f"{value:.2e}" for value in row.values()))
    Console().print(table)
    assert found["R3"]["mean"] < found["free"]["mean"]
    assert found["R3"]["max"] < found["free"]["max"]


# During the updates


@pytest.fixture
def ratios(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Log-ratios as the loss sees them, one tensor a micro-batch: of tokens, or of sequences where they share one."""
    seen: list[Tensor] = []
    original = torch_learner.objective

    def watched(logp: Tensor, inputs: Any, *others: Any) -> Terms:
        terms = original(logp, inputs, *others)
        ratio = terms.tokens.ratio.detach().log().expand_as(inputs.mask)
        shared = bool((ratio == ratio[:, :1]).all())
        seen.append(ratio[inputs.mask.any(1), 0] if shared else ratio[inputs.mask])
        return terms

    monkeypatch.setattr(torch_learner, "objective", watched)
    return seen


def train(start: Start, recipe: str, replay: bool, seen: list[Tensor]) -> Iterator[tuple[Tensor, dict[str, float]]]:
    """Log-ratios and signals of every step."""
    learner = build_learner(fresh(start.policy), settings_of(recipe, replay))
    for step, batch in enumerate(start.batches):
        seen.clear()
        signals = learner.step(batch, step)
        moved = [log_ratio for log_ratio in seen if log_ratio.any()]  # before the first update all are 0
        yield torch.cat(moved), signals


@pytest.mark.timeout(1800)
def test_the_ratios_of_three_objectives(start: Start, ratios: list[Tensor]) -> None:
    title = f"log ratio to the old policy, {STEPS} steps of four updates"
    table = Table("arm", "std", "largest, mean of steps", "largest", "expert sets equal", "clipped", title=title)
    spread = {}
    for arm, (recipe, replay) in ARMS.items():
        steps = list(train(start, recipe, replay, ratios))
        largest = [log_ratio.abs().max().item() for log_ratio, _ in steps]
        spread[arm] = fmean(log_ratio.std().item() for log_ratio, _ in steps)
        agreement = fmean(signals["routing_agreement"] for _, signals in steps)
        clipped = fmean(signals["clip_low"] + signals["clip_high"] for _, signals in steps)
        table.add_row(
            arm,
            f"{spread[arm]:.2e}",
            f"{fmean(largest):.2e}",
            f"{max(largest):.2e}",
            f"{agreement:.2%}",
            f"{clipped:.1%}",
        )
    Console().print(table)
    assert spread["GSPO"] < spread["token ratio, R3"] < spread["token ratio"]
