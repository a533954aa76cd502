"""Where a run's inputs are (data, models), inside its workspace and outside of it.

- What Git holds at the run's commit, all of it, is in the workspace with the code, under its own path.
- What DVC tracks there (`<path>.dvc`, or that of a folder around it) comes out of the cache, under its own path.
- Anything else appears as `inputs/<first digits of its sha256>/<name>`, a link while the run works; when the run is
  recorded it is put under DVC by that name. So a run is the same run wherever such a file lies.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal

from components.config import Settings
from components.config.inputs import input_sections
from components.errors import InputError
from components.files import os_errors, sha256_path
from flows.host.dvc import LINKS, configure, dvc
from flows.host.git import holds, succeeds

FOLDER = "inputs"
NOT_DATA = (".git", ".hg", ".dvc", ".dvcignore")
"""DVC leaves these out of a folder, or leaves out what they say."""
DIGITS = 12
"""Of a digest, enough to tell inputs apart."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a run."""

    path: str
    """Where stages read it, relative to the workspace."""
    sha256: str
    kept_by: Literal["git", "dvc", "link"]
    origin: Path | None = None
    """What a link leads to; None where only the link knows."""
    target: str = ""
    """What DVC calls an input that it tracks: its `.dvc` file, or its path where that of a folder around it has it."""

    @property
    def pointer(self) -> str:
        """The `.dvc` file of an input that is linked, once it is recorded."""
        return f"{self.path}.dvc"


def resolve_inputs(settings: Settings, project: Path, commit: str) -> tuple[Settings, tuple[Input, ...]]:
    """Make the paths of pinned inputs work from inside the workspace, and say how each gets there."""
    tree = settings.model_dump(mode="json")
    inputs = []
    for node in input_sections(tree):
        found = _locate(Path(node["path"]), node["sha256"], project, commit)
        node["path"] = found.path
        inputs.append(found)
    engine = tree["rollout"]["engine"]
    if engine.get("python"):
        engine["python"] = str(Path(engine["python"]).absolute())
    return Settings.model_validate(tree), tuple(inputs)


def recorded_inputs(settings: Settings, project: Path, commit: str) -> tuple[Input, ...]:
    """The inputs of a run whose paths were settled before, as its `params.yaml` has them."""
    nodes = input_sections(settings.model_dump(mode="json"))
    return tuple(_recorded_input(node["path"], node["sha256"], project, commit) for node in nodes)


def _locate(path: Path, sha256: str, project: Path, commit: str) -> Input:
    """Git keeps files themselves; what DVC keeps may be a link into its cache, which is no name to know it by."""
    named, target = path.absolute().parent.resolve() / path.name, path.resolve()
    if (inside := _inside(target, project)) and holds(project, commit, inside):
        return Input(inside, sha256, "git")
    if (inside := _inside(named, project)) and (known := _known_to_dvc(project, commit, inside)):
        return Input(inside, sha256, "dvc", target=known)
    for below in sorted(named.rglob("*")):  # a run is recorded with its inputs, whole
        if below.name in NOT_DATA or below.suffix == ".dvc":
            how = "take it out of the folder, or name a copy without it"
            raise InputError(f"a folder that is an input cannot be recorded with {below.name}", where=below, how=how)
    return Input(f"{FOLDER}/{sha256[:DIGITS]}/{_safe(named.name)}", sha256, "link", target)


def _safe(name: str) -> str:
    """A name that DVC takes neither for a stage (`file:stage`) nor for one of its own files."""
    safe = re.sub(r"[^\w.+= -]", "_", name).strip()
    return f"{safe}_" if safe.endswith(".dvc") else safe


def _recorded_input(path: str, sha256: str, project: Path, commit: str) -> Input:
    if PurePosixPath(path).is_absolute():
        how = "start it again with the command that began it"
        raise InputError("this run names an input by a place on one machine", where=path, how=how)
    if _has(project, commit, path):
        return Input(path, sha256, "git")
    known = _known_to_dvc(project, commit, path)
    return Input(path, sha256, "dvc" if known else "link", target=known)


def _inside(path: Path, project: Path) -> str | None:
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else None


def _known_to_dvc(project: Path, commit: str, path: str) -> str:
    """What DVC calls the path if the commit has a `.dvc` file of it or of a folder around it; else nothing.

    A bare path could be taken for the name of a stage.
    """
    if _has(project, commit, f"{path}.dvc"):
        return f"{path}.dvc"
    around = [*PurePosixPath(path).parents][:-1]
    return path if any(_has(project, commit, f"{one}.dvc") for one in around) else ""


def _has(project: Path, commit: str, path: str) -> bool:
    return succeeds(project, "cat-file", "-e", f"{commit}:{path}")


def check_links(settings: Settings, inputs: Sequence[Input]) -> None:
    """Refuse links that lead out of the volume that pods share: in a pod nothing is at their end.

    Raises:
        InputError: an input is neither in Git, nor tracked by DVC, nor on the volume.
    """
    cluster = settings.launch.kubernetes if settings.launch.kind == "kubernetes" else None
    if cluster is None or cluster.shared.kind != "volume":
        return
    volume = Path(cluster.shared.path).resolve()
    for one in inputs:
        if one.kept_by == "link" and one.origin is not None and not one.origin.is_relative_to(volume):
            how = f"name a copy below {cluster.shared.path}, or put it under DVC: dvc add, and commit the .dvc file"
            raise InputError("pods could not read this input: it is not on the volume", where=one.origin, how=how)


def place_inputs(root: Path, project: Path, inputs: tuple[Input, ...], *, log: Path) -> None:
    """Put a run's inputs into its workspace; those that are there stay.

    Raises:
        InputError: an input is gone, or is not what DVC has recorded of it.
    """
    wanted = [one for one in inputs if one.kept_by == "dvc"]
    for one in inputs:
        if one.kept_by == "link" and not _link(root / one.path, one.origin):
            if not (root / one.pointer).exists():
                how = "put it back, or start the run again with the command that names where it is now"
                raise InputError("an input of this run is gone", where=_link_target(root / one.path), how=how)
            (root / one.path).unlink(missing_ok=True)
            wanted.append(replace(one, target=one.pointer))  # it was recorded before it went
    fetch(root, project, wanted, log=log)


def _link(link: Path, origin: Path | None) -> bool:
    """Lead to the origin, wherever it was before; returns whether anything is there.

    The digest in the settings detects a changed file.
    """
    if origin is None or (link.exists() and not link.is_symlink()) or _link_target(link) == origin:
        return link.exists()
    with os_errors("link", link):
        link.parent.mkdir(parents=True, exist_ok=True)
        temporary = link.with_name(f".{link.name}.new")
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(origin)
        os.replace(temporary, link)
    return True


def _link_target(link: Path) -> Path:
    return link.readlink() if link.is_symlink() else link


def fetch(root: Path, project: Path, inputs: list[Input], *, log: Path) -> None:
    """Get inputs out of DVC's cache, or from the remote where the cache has them not, and compare their digests.

    Raises:
        InputError: they are in neither, or their content is not what the run was made with.
    """
    missing = [one for one in inputs if not (root / one.path).exists()]
    if not missing:
        return
    configure(root, project, link_types=LINKS)
    try:
        how = "`dvc push` them where they are, or name a remote that has them (`dvc remote add --default`)"
        dvc(root, project, "pull", "--", *(one.target for one in missing), log=log, how=how)
    finally:
        configure(root, project)
    digests = {one.path: sha256_path(root / one.path) for one in missing}
    wrong = [one for one in missing if digests[one.path] != one.sha256]
    for path in (root / one.path for one in wrong):  # the next attempt would take it for what it should be
        with os_errors("remove", path):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    if wrong:
        one = wrong[0]
        known = f"sha256 {digests[one.path][:DIGITS]}, and the run was made with {one.sha256[:DIGITS]}"
        how = f"record what is there now (`dvc add {one.path}`, and commit it), or `dvc checkout` what was"
        raise InputError(f"DVC has recorded another content of this input: {known}", where=one.path, how=how)
