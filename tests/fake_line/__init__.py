"""A project like this one whose stages do next to nothing, for tests of what surrounds the stages.

`build` copies the project and puts `stages/` in place of its stages. Pipeline, settings, layout, registry and flows are
the real ones.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from flows.git import git
from tests.code_graph import ROOT

COPIED = ("configs", "flows", "components", "dvc.yaml", "params.yaml", "constraints.txt", "pyproject.toml")
HIDDEN = (".gitignore", ".dvcignore", ".dvc/config", ".dvc/.gitignore")


def build(target: Path) -> Path:
    """A committed fake project under ``target``; returns ``target``."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in (*COPIED, *HIDDEN):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, target / name)
    for path in (Path(__file__).parent / "stages").glob("*.py"):
        shutil.copy(path, target / "components/stages" / path.name)
    git(target, "init", "--quiet", "--initial-branch=main")
    git(target, "add", "--all")
    git(target, "commit", "--quiet", "--message=fake line")
    return target
