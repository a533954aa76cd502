"""Every recipe trains the demo model for a few steps, from the settings in its file to finite numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from components.files import read_jsonl
from tests.recipes import RECIPES, base_of, prepare, train

pytestmark = pytest.mark.integration
STEPS = 2
SHORT: dict[str, Any] = {
    # Comparisons, which even a checkpoint with hardly any training gets right now and then.
    "data": {"source": {"rows": 1500, "families": ["comparison"], "levels": 2}},
    "sft": {"steps": 60, "warmup": 10, "checkpoint_every": 60},
    "triage": {"prompts": 16, "override": "the checkpoint has had hardly any training"},
    "clusters": {"k": 4},
    "schedule": {"kind": "ads", "window": 4, "active": 2},
    "train": {"steps": STEPS, "prompts_per_step": 8, "eval_every": STEPS, "eval_prompts": 4, "eval_samples": 2},
}


def short(recipe: str) -> dict[str, Any]:
    """The changes that make a recipe's base small; other tasks keep their own problems."""
    if base_of(recipe) != "p4ir.yaml":
        return SHORT
    return {**SHORT, "data": {"source": {"rows": 1500}}, "schedule": {"kind": "uniform"}}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bases")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_trains(recipe: str, bases: Path, tmp_path: Path) -> None:
    prepared = prepare(bases, recipe, short(recipe))
    _, layout = train(prepared, tmp_path, recipe, short(recipe), over={"learner": {"critic": {"pretrain_steps": 1}}})
    rows = [row["signals"] for row in read_jsonl(layout.records)]
    assert [row["nonfinite"] for row in rows] == [0.0] * STEPS
    updated = [row for row in rows if "loss" in row]
    assert updated, "no step had a group that carries a gradient"
    assert all(math.isfinite(row["loss"]) and row["grad_norm"] > 0 for row in updated)
    assert (layout.train_checkpoint / "model.safetensors").exists()
