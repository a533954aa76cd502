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
PREPARED = ("data", "sft", "triage", "clusters")
"""Stages that no recipe changes; recipes of one base share them."""


def base_of(recipe: str) -> str:
    return BASES.get(recipe, "demo.yaml")


def recipe_settings(folder: Path, recipe: str | None, base: str, changes: Mapping[str, Any]) -> Settings:
    """The recipe over its base, with a test's own changes under both of them."""
    under = folder / "under.yaml"
    under.write_text(yaml.safe_dump({"extends": [str(CONFIGS / base)], **changes}))
    recipes = [str(CONFIGS / "recipes" / f"{recipe}.yaml")] if recipe else []
    top = folder / "config.yaml"
    top.write_text(yaml.safe_dump({"extends": [str(under), *recipes]}))
    return load(top)


def prepare(folder: Path, base: str, changes: Mapping[str, Any]) -> Path:
    """Run the stages before training once; the folder may exist from before."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "ready").exists():
        settings = recipe_settings(folder, None, base, changes)
        for stage in PREPARED:
            run_stage(stage, settings, Layout(folder))
        (folder / "ready").touch()
    return folder


def train(prepared: Path, folder: Path, recipe: str, changes: Mapping[str, Any]) -> tuple[Settings, Layout]:
    """Train a recipe from a prepared folder, in a folder of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared / "out", folder / "out")
    settings = recipe_settings(folder, recipe, base_of(recipe), changes)
    run_stage("train", settings, Layout(folder))
    return settings, Layout(folder)
