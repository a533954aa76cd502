"""Inputs that neither Git nor DVC knew are put under DVC, so that a reproduction elsewhere finds them by their digest.

DVC copies them into its cache once. The link in the workspace stays what it is, and so does what it leads to.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from components.errors import InputError
from components.files import os_errors, read_text, sha256_path, write_text
from flows.host.dvc import configure, dvc
from flows.run.inputs import DIGITS, Input
from flows.run.workspace import Workspace


def track_inputs(workspace: Workspace) -> list[str]:
    """Put every linked input under DVC; returns their `.dvc` files and the ignore files next to them.

    Raises:
        InputError: DVC refused, the disk is full, or an input is not what the run began with.
    """
    files = []
    for one in workspace.inputs:
        if one.kept_by == "link":
            pointer = workspace.root / one.pointer
            if not pointer.exists():
                _add(workspace, one, pointer)
            ignore = pointer.with_name(".gitignore")
            write_text(ignore, f"/{pointer.name.removesuffix('.dvc')}\n")
            files += [one.pointer, ignore.relative_to(workspace.root).as_posix()]
    return sorted(set(files))


def _add(workspace: Workspace, one: Input, pointer: Path) -> None:
    """Add it in a DVC repository of its own, which is dropped: DVC takes no folder behind a link, only files."""
    source, scratch = workspace.root / one.path, workspace.layout.state / "inputs"
    with os_errors("write", scratch):
        shutil.rmtree(scratch, ignore_errors=True)
        _mirror(source.resolve(), scratch / source.name)
        write_text(scratch / ".dvc" / "config", "[core]\n    no_scm = true\n    analytics = false\n")
        configure(scratch, workspace.project)
    again = f"then `evenkeel run --resume {workspace.run_id}` records the run"
    how = f"fix that, {again}; DVC keeps a copy in its cache, which needs disk space"
    log = workspace.log("recording")
    dvc(scratch, workspace.project, "add", "--no-relink", "--", source.name, log=log, how=how)
    found = sha256_path(source)  # after DVC has read it: what the run began with could have changed until then
    if found != one.sha256:
        what = (
            f"an input changed while the run worked: sha256 {found[:DIGITS]}, and it began with {one.sha256[:DIGITS]}"
        )
        raise InputError(what, where=source.resolve(), how=f"put back what it was, {again}")
    write_text(pointer, read_text(scratch / f"{source.name}.dvc"))
    shutil.rmtree(scratch)


def _mirror(source: Path, target: Path) -> None:
    """A link to a file, or folders of links to files."""
    if source.is_dir():
        target.mkdir(parents=True)
        for below in source.iterdir():
            _mirror(below, target / below.name)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)
