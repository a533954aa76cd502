"""The code that pods run: that of the workspace or, in a project that uses the installed package, a copy of it."""

from __future__ import annotations

import shutil
from pathlib import Path

from components.code_digest import code_digest
from components.config.extensions import python_entries
from components.config.shipped import INSTALLED, SHIPPED
from components.directories import write_directory

PACKAGE = Path(__file__).parents[1]
COPY = Path(".state/launch/code")
READ = ("configs", "dvc.yaml")
"""What the package reads and has next to it in a checkout; a wheel has it inside."""


def code_folder(workspace: Path) -> Path:
    """The folder that pods import `components` from, below the workspace; "." where that has the code itself."""
    return Path() if (workspace / PACKAGE.name).is_dir() else COPY


def copy_installed(workspace: Path) -> None:
    """Copy the installed package into a workspace without code, unless the copy there is of this very code.

    Raises:
        InputError: the files cannot be written.
    """
    target = workspace / COPY
    if code_folder(workspace) == Path() or (target.is_dir() and code_digest(target / PACKAGE.name) == code_digest()):
        return
    write_directory(target, _fill)


def _fill(folder: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=ignored)
    if SHIPPED == INSTALLED:
        return
    for source in (SHIPPED / name for name in READ):
        copy = shutil.copytree if source.is_dir() else shutil.copyfile
        copy(source, folder / source.name)


def extensions(workspace: Path, settings: object) -> list[Path]:
    """Packages and modules of the workspace that ``kind: python`` settings name, below it; others are installed."""
    tops = {entry.target.partition(":")[0].partition(".")[0] for _, entry in python_entries(settings)}
    places = (Path(name) for top in sorted(tops) for name in (top, f"{top}.py"))
    return [place for place in places if (workspace / place).exists()]
