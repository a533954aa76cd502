"""A committed copy of the project in a folder of a test."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from flows.host.git import git
from tests.code_graph import ROOT

COPIED = (
    "configs",
    "flows",
    "components",
    "dvc.yaml",
    "prefect.yaml",
    "params.yaml",
    "constraints.txt",
    "pyproject.toml",
)
HIDDEN = (".gitignore", ".dvcignore", ".dvc/config", ".dvc/.gitignore")


def copy_project(target: Path) -> Path:
    """Copy what a run needs to ``target``; nothing is committed yet."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in (*COPIED, *HIDDEN):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, target / name)
    return target


def commit_all(project: Path) -> Path:
    """Make ``project`` a repository whose first commit holds all of it."""
    git(project, "init", "--quiet", "--initial-branch=main")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message=copy")
    return project


RUN_LINE = re.compile(r"^(\S+)  commit ", re.MULTILINE)
"""The line of `evenkeel run` that says where it works. Lines of progress may come before it."""


def run_id(said: str) -> str:
    """The name of the run, from `RUN_LINE`."""
    found = RUN_LINE.search(said)
    assert found, said
    return found[1]
