"""A project of one's own: a Git repository with configuration, without the code of this package;
and the versions of what is installed."""

from __future__ import annotations

import platform
import shutil
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from components.config.shipped import INSTALLED, PROJECT_CONFIGS, SHIPPED
from components.directories import write_directory
from components.errors import InputError
from components.files import write_text
from components.installed import CODE, CONSTRAINTS, own_constraints, record
from flows.host.git import IDENTITY, git, resolve, succeeds

TEMPLATE = Path(__file__).parent / "template"
COPIED = ("prefect.yaml", ".dvcignore", ".dvc/config", ".dvc/.gitignore")
GOVERNANCE = ("promotion/policy.yaml", "health/default.yaml")
"""The policy and the rules that it names: of the project, so that no update of the package changes them."""
PACKAGES = ("evenkeel", "torch", "transformers", "vllm", "prefect", "dvc")


def start(target: Path) -> None:
    """Make the new folder ``target`` a repository with one commit, whole or not at all.

    Raises:
        InputError: there is something at ``target``, this is no installed version, or Git refuses.
    """
    if target.exists():
        raise InputError("there is something at this path", where=target, how="name a folder that is not there")
    write_directory(target, _fill)


def _fill(folder: Path) -> None:
    shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "gitignore").rename(folder / ".gitignore")
    for name in COPIED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SHIPPED / name, folder / name)
    for name in GOVERNANCE:
        (folder / "configs" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROJECT_CONFIGS / name, folder / "configs" / name)
    update(folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    known = succeeds(folder, "config", "user.email")
    git(folder, "commit", "--quiet", f"--message=Begin with evenkeel {installed()}", extra=None if known else IDENTITY)


def update(project: Path) -> list[str]:
    """Record the installed package in a project: constraints, pipeline, digests. Returns the stages with other code. A
    checkout, which has the code itself, is an `InputError`."""
    if (project / CODE).is_dir():
        raise InputError("this is a checkout of Evenkeel, which has the code itself", where=project, how="use git")
    write_text(project / CONSTRAINTS, own_constraints(installed()))
    return record(project)


def installed() -> str:
    """Version of the package. Where it is not installed it is an `InputError`."""
    if (found := version_of("evenkeel")) is None:
        how = "pip install the wheel, or a checkout with -e"
        raise InputError("the package evenkeel is not installed", how=how)
    return found


def versions() -> dict[str, str | None]:
    """Name -> version, None for what is not installed; ``commit`` of a checkout, with ``+`` where files differ."""
    found = {name: version_of(name) for name in PACKAGES}
    return {**found, "python": platform.python_version(), "commit": _commit(SHIPPED)}


@cache
def version_of(name: str) -> str | None:
    """Of an installed package; None for one that is not."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _commit(folder: Path) -> str | None:
    head = None if folder == INSTALLED else resolve(folder, "HEAD")
    if head is None:
        return None
    return head + ("+" if git(folder, "status", "--porcelain", "--untracked-files=no") else "")
