"""The share of a learner step that lies between logits and the scalar, forward and backward: `make bench`.

The demo's model and batch, with its own objective and with some that do more. The clock starts when the output layer
has made its logits and stops when their gradient arrives there; the step is all of it, optimizer and passes without
gradient included.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from components.config import Settings, load
from components.config.policy import TinyModel
from components.learner.batch import Batch, build_batch
from components.learner.build import build_learner
from components.policy import Policy
from components.policy.tiny import build_model, build_tokenizer
from components.tasks import TASKS
from components.types import Completion, Group, Score

CONFIGS = Path(__file__).parents[2] / "configs"
RECIPES = ("grpo", "gspo", "entropy_bonus", "kl_cov")
STEPS = 5


def demo(recipe: str | None) -> Settings:
    """The demo, with the objective of a recipe."""
    settings = load(CONFIGS / "demo.yaml")
    if recipe is None:
        return settings
    changed = load(CONFIGS / "recipes" / f"{recipe}.yaml")
    return settings.model_copy(update={"objective": changed.objective, "learner": changed.learner})


def policy_and_batch(settings: Settings) -> tuple[Policy, Batch]:
    """A fresh model of the demo's size, and a batch of the demo's size: solutions and demonstrations in turn."""
    prompts = TASKS["arithmetic"](settings.data.source.model_copy(update={"rows": 2000}), 0)
    model = settings.policy.model
    assert isinstance(model, TinyModel)
    texts = [text for p in prompts for text in (p.text, p.solution)]
    tokenizer = build_tokenizer(texts, model.vocab_size, model.max_positions)
    policy = Policy(build_model(model, tokenizer, 0), tokenizer)
    size = settings.rollout.group_size
    scores = tuple(Score(float(i % 2)) for i in range(size))
    groups = []
    for prompt in prompts[: settings.train.prompts_per_step]:
        texts = [prompt.demonstration if i % 2 else prompt.solution for i in range(size)]
        ids = [policy.encode_answer(text) for text in texts]
        completions = tuple(Completion(i, (-0.1,) * len(i), "stop", t) for i, t in zip(ids, texts, strict=True))
        groups.append(Group(prompt, policy.encode_prompt(prompt.text), completions, scores))
    batch = build_batch(groups, policy.pad_id)
    signs = torch.where(batch.member % 2 == 0, 1.0, -1.0)[:, None]
    return policy, replace(batch, advantages=signs * batch.response_mask, ref_logp=batch.rollout_logp)


class Clock:
    """Adds up the time between the logits of a pass and the arrival of their gradient."""

    def __init__(self, layer: torch.nn.Module) -> None:
        self.seconds, self._began = 0.0, 0.0
        layer.register_forward_hook(self._logits)

    def _logits(self, _layer: object, _inputs: object, logits: Tensor) -> None:
        if logits.requires_grad:
            logits.register_hook(self._gradient)
        self._began = time.process_time()

    def _gradient(self, _gradient: Tensor) -> None:
        self.seconds += time.process_time() - self._began


def share(settings: Settings) -> dict[str, Any]:
    """Median CPU seconds of a step, and of what lies between logits and scalar."""
    policy, batch = policy_and_batch(settings)
    learner, clock = build_learner(policy, settings), Clock(policy.model.get_output_embeddings())
    rows = []
    for step in range(STEPS + 1):
        clock.seconds, began = 0.0, time.process_time()
        learner.step(batch, step)
        rows.append((time.process_time() - began, clock.seconds))
    rows = sorted(rows[1:], key=lambda row: row[1] / row[0])
    step, objective = rows[len(rows) // 2]
    return {"step": step, "objective": objective, "share": objective / step}


@pytest.mark.timeout(1800)
def test_the_objective_takes_at_most_a_tenth_of_a_learner_step() -> None:
    torch.set_num_threads(1)
    table = Table(
        "objective", "step, ms", "logits to scalar and back, ms", "share", title="256 completions, one thread"
    )
    shares = {}
    for recipe in (None, *RECIPES):
        found = share(demo(recipe))
        shares[recipe or "demo"] = found["share"]
        table.add_row(
            recipe or "demo", f"{1e3 * found['step']:.0f}", f"{1e3 * found['objective']:.0f}", f"{found['share']:.1%}"
        )
    Console().print(table)
    assert shares["demo"] <= 0.1
