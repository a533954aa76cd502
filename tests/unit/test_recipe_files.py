"""The recipes as a reader finds them: every file is in the table, with its paper, and resolves to valid settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.recipes import CONFIGS, RECIPES, base_of, recipe_settings

FOLDER = CONFIGS / "recipes"
LINES = (FOLDER / "README.md").read_text().splitlines()
TABLE = [line for line in LINES if line.startswith("| `") and "](https://" in line]
"""The table of methods; that of their results has no sources."""


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_is_in_the_table_with_a_source(recipe):
    rows = [line for line in TABLE if f"`{recipe}`" in line.split("|")[1]]
    assert len(rows) == 1


def test_the_table_names_no_recipe_that_does_not_exist():
    named = {name for line in TABLE for name in re.findall(r"`([a-z0-9_]+)`", line.split("|")[1])}
    assert named == set(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_says_where_it_comes_from_and_resolves(recipe: str, tmp_path: Path):
    assert re.match(r"# .*(arXiv|https://)", (FOLDER / f"{recipe}.yaml").read_text().replace("\n# ", " "))
    recipe_settings(tmp_path, recipe, base_of(recipe), {})
