"""What a person fills in to start a run, in the Prefect UI or on the command line, and the settings it stands for.

The types carry what the UI's form shows: choices, bounds, explanations. Everything here is flat, with an empty value
for "as the configuration has it": the form has no good way to omit a field.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from pydantic import Field

from components.config.shipped import INSTALLED, PREFIX, PROJECT_CONFIGS, SHIPPED
from components.errors import InputError

DEMO = "configs/demo.yaml"
"""What commands and forms take where no configuration is named."""
AS_CONFIGURED = "as configured"
RECIPES = PROJECT_CONFIGS / "recipes"
KINDS = {".jsonl": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
"""Kinds of a file source by suffix; a folder is what `datasets` saved."""


def configurations() -> list[str]:
    """The configurations that can be run: of this project, relative to it; and of the package, where that is
    installed."""
    shipped = sorted([*PROJECT_CONFIGS.glob("*.yaml"), *PROJECT_CONFIGS.glob("faults/*.yaml")])
    if SHIPPED != INSTALLED:
        return [path.relative_to(SHIPPED).as_posix() for path in shipped]
    own = [path.as_posix() for path in sorted(Path("configs").glob("*.yaml"))]
    return [*own, *(f"{PREFIX}{path.relative_to(PROJECT_CONFIGS).as_posix()}" for path in shipped)]


def recipes() -> list[str]:
    """The names of the recipes."""
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


Config = Annotated[str, Field(json_schema_extra={"enum": configurations()})]
Recipe = Annotated[str, Field(json_schema_extra={"enum": [AS_CONFIGURED, *recipes()]})]
Launcher = Annotated[str, Field(json_schema_extra={"enum": [AS_CONFIGURED, "inline", "processes", "kubernetes"]})]
Limit = Annotated[float, Field(ge=0)]
"""Hours; 0: as configured."""


def recipe_file(name: str) -> Path | None:
    """The file of a recipe; none for "as configured". A name that no recipe has is an `InputError`."""
    if name in ("", AS_CONFIGURED):
        return None
    if name not in recipes():
        raise InputError(f"no recipe named {name!r}", where=RECIPES, how=f"one of {', '.join(recipes())}")
    return RECIPES / f"{name}.yaml"


def settings_of(
    *, dataset: str = "", launcher: str = AS_CONFIGURED, max_hours: float = 0, max_gpu_hours: float = 0
) -> list[str]:
    """The overrides that these fields of the form stand for; they come before those that were typed in. The prompts of
    a ``dataset`` are read with the columns that the configuration names, where it reads a file of that kind."""
    found: dict[str, str | float] = {}
    if dataset:
        path = Path(dataset)
        kind = "arrow" if path.is_dir() else KINDS.get(path.suffix)
        if kind is None:
            how = f"name a file that ends in one of {', '.join(KINDS)}, or a folder that `datasets` saved"
            raise InputError("this is no dataset that can be read", where=path, how=how)
        found["data.source"] = json.dumps({"kind": kind, "path": dataset, "sha256": None})
    found |= {"launch.kind": "" if launcher == AS_CONFIGURED else launcher}
    found |= {"budget.hours": max_hours, "budget.gpu_hours": max_gpu_hours}
    return [f"{setting}={value}" for setting, value in found.items() if value]
