"""Every recipe over the configuration that it is shown on, for the tests and for the benchmark."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from components.config import Settings, load
from components.layout import Layout
from components.stages import run_stage

CONFIGS = Path(__file__).parents[1] / "configs"
RECIPES = sorted(path.stem for path in (CONFIGS / "recipes").glob("*.yaml"))
BASES = {"p4ir": "p4ir.yaml", "r3": "moe.yaml"}
"""Recipes that need another task or another model than the demo's."""
OWN_DATA = ("cora",)
"""Recipes that change what the data stage makes."""
PREPARED = ("data", "audit", "sft", "admission", "triage", "clusters")
"""Stages before training; recipes share them, but for those of `OWN_DATA`."""
Changes = Mapping[str, Any]


def base_of(recipe: str) -> str:
    return BASES.get(recipe, "demo.yaml")


def recipe_settings(
    folder: Path, recipe: str | None, base: str, under: Changes, over: Changes | None = None
) -> Settings:
    """The recipe over its base, with a test's own changes ``under`` both of them and ``over`` them."""
    below = folder / "under.yaml"
    below.write_text(yaml.safe_dump({"extends": [str(CONFIGS / base)], **under}))
    recipes = [str(CONFIGS / "recipes" / f"{recipe}.yaml")] if recipe else []
    top = folder / "config.yaml"
    top.write_text(yaml.safe_dump({"extends": [str(below), *recipes], **(over or {})}))
    return load(top)


def prepare(folder: Path, recipe: str, under: Changes, base: str | None = None) -> Path:
    """Run the stages before training once for all recipes that share them; returns their folder.

    ``base`` is the configuration, if not the one that the recipe is shown on.
    """
    own, base = recipe if recipe in OWN_DATA else None, base or base_of(recipe)
    folder = folder / f"{Path(base).stem}-{own or 'shared'}"
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        settings = recipe_settings(folder, own, base, under)
        for stage in PREPARED:
            run_stage(stage, settings, Layout(folder))
        (folder / "ready").touch()
    return folder


def train(
    prepared: Path, folder: Path, recipe: str, under: Changes, over: Changes | None = None
) -> tuple[Settings, Layout]:
    """Train a recipe from a prepared folder, in a folder of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared / "out", folder / "out")
    settings = recipe_settings(folder, recipe, base_of(recipe), under, over)
    run_stage("train", settings, Layout(folder))
    return settings, Layout(folder)
