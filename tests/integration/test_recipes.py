"""Every recipe trains the demo model for a few steps, from the settings in its file to finite numbers."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from components.files import read_jsonl
from tests.recipes import RECIPES, base_of, prepare, train

pytestmark = pytest.mark.integration
STEPS = 2
SHORT = {
    "sft": {"steps": 30, "checkpoint_every": 30},
    "triage": {"prompts": 4, "override": "the checkpoint has had hardly any training"},
    "schedule": {"kind": "ads", "window": 4, "active": 2},
    "train": {"steps": STEPS, "prompts_per_step": 8, "eval_every": STEPS, "eval_prompts": 4, "eval_samples": 2},
}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bases")


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_trains(recipe: str, bases: Path, tmp_path: Path) -> None:
    prepared = prepare(bases / base_of(recipe), base_of(recipe), SHORT)
    _, layout = train(prepared, tmp_path, recipe, SHORT)
    rows = [row["signals"] for row in read_jsonl(layout.records)]
    assert [row["nonfinite"] for row in rows] == [0.0] * STEPS
    updated = [row for row in rows if "loss" in row]
    assert updated, "no step had a group that carries a gradient"
    assert all(math.isfinite(row["loss"]) and row["grad_norm"] > 0 for row in updated)
    assert (layout.train_checkpoint / "model.safetensors").exists()
